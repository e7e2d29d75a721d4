package report

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// order is the order of conditions in objects, as Cluster API v1.14 stores them: what counts most is first. Types that are not listed
// come before the last two, by name.
var order = []string{ // A constant list.
	"Available", "Ready", "UpToDate", "RemoteConnectionProbe", "BootstrapConfigReady", "InfrastructureReady", "ControlPlaneInitialized",
	"ControlPlaneAvailable", "WorkersAvailable", "CertificatesAvailable", "Initialized", "EtcdClusterHealthy",
	"ControlPlaneComponentsHealthy", "NodeHealthy", "NodeReady", "NodeKubeadmLabelsAndTaintsSet", "EtcdPodHealthy", "EtcdMemberHealthy",
	"APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "HealthCheckSucceeded", "OwnerRemediated",
	"TopologyReconciled", "Updating", "RollingOut", "Remediating", "ScalingDown", "ScalingUp", "MachinesReady",
	"ControlPlaneMachinesReady", "WorkerMachinesReady", "MachinesUpToDate", "ControlPlaneMachinesUpToDate", "WorkerMachinesUpToDate",
}

var last = []string{"Paused", "Deleting"} // A constant list.

// Sort sorts conditions as they are stored.
func Sort(conditions []metav1.Condition) {
	slices.SortFunc(conditions, func(a, b metav1.Condition) int {
		return cmp.Or(cmp.Compare(rank(a.Type), rank(b.Type)), cmp.Compare(a.Type, b.Type))
	})
}

func rank(t string) int {
	if i := slices.Index(order, t); i >= 0 {
		return i
	}
	return len(order) + 1 + slices.Index(last, t) // Those of last after the others, which have -1.
}
