package recovery

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// protect adds the finalizer and the label of the Cluster. A recovery that has completed needs none.
func protect(_ context.Context, s *scope) (step.Result, error) {
	r := s.recovery
	if r.Status.Phase == fleetv1.OperationPhaseCompleted {
		return step.Done(), nil
	}
	if r.Labels[clusterv1.ClusterNameLabel] == "" {
		if r.Labels == nil {
			r.Labels = map[string]string{}
		}
		r.Labels[clusterv1.ClusterNameLabel] = naming.LabelValue(r.Spec.ClusterName)
	}
	if controllerutil.AddFinalizer(r, fleetv1.ControlPlaneRecoveryFinalizer) {
		return step.Checkpoint(), nil
	}
	return step.Done(), nil
}
