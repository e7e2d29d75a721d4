package recovery

import (
	"context"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// protect adds the finalizer, and keeps the object here from the time when the control plane is held.
func protect(_ context.Context, s *scope) (step.Result, error) {
	r := s.recovery
	return operation.Protect(r, &r.Status.Phase, operation.Protection{
		Finalizer: fleetv1.ControlPlaneRecoveryFinalizer, Cluster: r.Spec.ClusterName, Stays: s.Begun(fleetv1.RecoveryStepHold),
		// One that has failed holds the control plane until users have seen that, and deleted it.
		Holds: r.Status.Phase == fleetv1.OperationPhaseFailed && s.Underway(),
	}), nil
}
