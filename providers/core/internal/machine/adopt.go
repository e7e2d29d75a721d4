package machine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt adds the cluster name label and the finalizer, and makes the Cluster the owner of a standalone Machine.
func (c *Controller) adopt(_ context.Context, s *scope) (step.Result, error) {
	m := s.machine
	ownership.AddClusterLabel(m, s.cluster)
	if isStandalone(m) {
		ownership.AddCluster(m, s.cluster)
	}
	controllerutil.AddFinalizer(m, clusterv1.MachineFinalizer)
	return step.Checkpoint(), nil
}

// isStandalone reports whether no MachineSet, control plane or MachinePool controls the Machine or is about to adopt it.
func isStandalone(m *clusterv1.Machine) bool {
	if metav1.GetControllerOf(m) != nil {
		return false
	}
	for _, label := range []string{clusterv1.MachineSetNameLabel, clusterv1.MachinePoolNameLabel, clusterv1.MachineControlPlaneNameLabel} {
		if _, ok := m.Labels[label]; ok {
			return false
		}
	}
	return true
}
