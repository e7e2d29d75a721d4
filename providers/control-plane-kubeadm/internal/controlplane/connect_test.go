package controlplane

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// Conditions report an unreachable workload cluster only after UnreachableAfter.
func TestUnreachableWorkloadClusters(t *testing.T) {
	b := newBench(t)
	b.KCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	b.Machines = []*snapshot.Machine{{Machine: &clusterv1.Machine{Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: "n"}}}}}
	result, err := b.take(t.Context(), "connect")
	if err != nil || b.s.connection.Lost || result.After() != connection.UnreachableAfter {
		t.Errorf("at first: lost %t, again in %s, error %v", b.s.connection.Lost, result.After(), err)
	}
	b.API.Clock.SetTime(object.Now().Add(connection.UnreachableAfter))
	if _, err := b.take(t.Context(), "connect"); err != nil || !b.s.connection.Lost {
		t.Errorf("later: lost %t, error %v", b.s.connection.Lost, err)
	}
	for _, c := range health.Conditions(b.ControlPlane, b.Machines[0], nil) {
		if c.Status != corev1.ConditionUnknown {
			t.Errorf("condition %+v is not unknown", c)
		}
	}
}
