package rotation

import (
	"context"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// protect adds the finalizer. A rotation lasts for as long as three rollouts, so it can be moved meanwhile.
func protect(_ context.Context, s *scope) (step.Result, error) {
	r := s.rotation
	return operation.Protect(r, &r.Status.Phase, operation.Protection{
		Finalizer: fleetv1.RotationFinalizer, Cluster: r.Spec.ClusterName,
	}), nil
}
