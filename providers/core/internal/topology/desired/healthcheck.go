package desired

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// healthCheckClass returns the definition of a health check: that of the topology, own, if any field is set, otherwise that of the class.
// It is undefined if the topology disables the check, or neither defines one.
func healthCheckClass(
	class clusterv1.ControlPlaneClassHealthCheck, enabled *bool, own clusterv1.ControlPlaneClassHealthCheck,
) clusterv1.ControlPlaneClassHealthCheck {
	switch {
	case !ptr.Deref(enabled, true):
		return clusterv1.ControlPlaneClassHealthCheck{}
	case own.IsDefined():
		return own
	}
	return class
}

// healthCheck returns a MachineHealthCheck of the Machines that have a label, with the selector that Cluster API v1.7 and v1.14 write, and
// with the default of the timeout that they set. It is nil if class is undefined.
func healthCheck(
	cluster *clusterv1.Cluster, name string, class clusterv1.ControlPlaneClassHealthCheck, label, value string,
) *clusterv1.MachineHealthCheck {
	if !class.IsDefined() {
		return nil
	}
	class = *class.DeepCopy()
	class.Checks.NodeStartupTimeoutSeconds = or(class.Checks.NodeStartupTimeoutSeconds,
		ptr.To(int32(clusterv1.DefaultNodeStartupTimeout/time.Second)))
	return &clusterv1.MachineHealthCheck{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineHealthCheck"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: name, Labels: ClusterLabels(cluster),
			OwnerReferences: []metav1.OwnerReference{owner(cluster)},
		},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: cluster.Name,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.ClusterTopologyOwnedLabel: "", label: value}},
			Checks:      class.Checks,
			Remediation: class.Remediation,
		},
	}
}
