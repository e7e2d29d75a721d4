package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// TestKilledControlPlane kills a control plane machine of a Cluster without a class. A MachineHealthCheck has it replaced. etcd keeps its
// quorum.
func TestKilledControlPlane(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	var c *journey.Subject
	stage(t, "3 control plane machines and 2 workers", func() {
		c = subject(t, w, withoutClass("plain"))
		applyFile(t, w, "cluster.yaml")
		network(t, c)
		c.Eventually("the Cluster becomes ready", journey.Ready, journey.ControlPlanes(3), journey.Workers(2), journey.Version(newer), c.WorkloadMatches)
	})
	victim := c.Snapshot().ControlPlane()[0]
	api, members := writes(t, c), quorum(t, c)
	must(t, "kill", containerOf(victim))
	stage(t, "noticed that the container of a control plane machine does not run", func() {
		c.Eventually("the infrastructure is not ready", lacks(victim.Name, clusterv1.InfrastructureReadyCondition))
	})
	stage(t, "and that its Node does not respond, 40 to 50 s after its last heartbeat", func() {
		c.Eventually("the Node is unhealthy", lacks(victim.Name, clusterv1.MachineNodeHealthyCondition))
	})
	stage(t, "replaced it", func() {
		checkHealth(t, c)
		c.Eventually("the Machine is replaced", journey.Ready, journey.ControlPlanes(3), c.WorkloadMatches, func(p *journey.Snapshot) error {
			for _, m := range p.ControlPlane() {
				if m.Name == victim.Name {
					return fmt.Errorf("Machine %s still exists", m.Name)
				}
			}
			return nil
		})
	})
	members.end(10 * time.Second)
	api.end(20 * time.Second)
	gone(t, c)
}

// lacks is a Condition: a condition of a Machine is not True.
func lacks(name string, condType clusterv1.ConditionType) journey.Condition {
	return func(p *journey.Snapshot) error {
		for _, m := range p.Machines.Items {
			if m.Name == name && !journey.ConditionIsTrue(&m, condType) {
				return nil
			}
		}
		return fmt.Errorf("Machine %s exists, and its condition %s is True", name, condType)
	}
}

// withoutClass returns the Cluster of the objects of this name in testdata.
func withoutClass(name string) *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1.ClusterSpec{
			ClusterNetwork:    &clusterv1.ClusterNetwork{Pods: &clusterv1.NetworkRanges{CIDRBlocks: []string{"192.168.0.0/16"}}},
			InfrastructureRef: &corev1.ObjectReference{APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: "DockerCluster", Name: name},
			ControlPlaneRef:   &corev1.ObjectReference{APIVersion: "controlplane.cluster.x-k8s.io/v1beta1", Kind: "KubeadmControlPlane", Name: name},
		},
	}
}

// containerOf returns the container of a Machine.
func containerOf(m clusterv1.Machine) string {
	return strings.TrimPrefix(*m.Spec.ProviderID, "docker:////")
}

// checkHealth creates a health check that replaces control plane Machines whose Node does not respond.
func checkHealth(t *testing.T, c *journey.Subject) {
	t.Helper()
	check := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: c.Name, Selector: metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}},
			MaxUnhealthy: ptr.To(intstr.FromString("40%")),
			UnhealthyConditions: []clusterv1.UnhealthyCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Timeout: metav1.Duration{Duration: time.Second}},
			},
		},
	}
	if err := c.Client.Create(t.Context(), check); err != nil {
		t.Fatal(err)
	}
}
