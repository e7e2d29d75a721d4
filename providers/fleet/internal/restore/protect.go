package restore

import (
	"context"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteForMove is the annotation that clusterctl move sets on objects before it deletes them: they go on in another management cluster.
const deleteForMove = "clusterctl.cluster.x-k8s.io/delete-for-move"

// protect adds the finalizer, and keeps the object here from the time when the control plane is held.
func protect(_ context.Context, s *scope) (step.Result, error) {
	r := s.restore
	return operation.Protect(r, &r.Status.Phase, operation.Protection{
		Finalizer: fleetv1.ControlPlaneRestoreFinalizer, Cluster: r.Spec.ClusterName, Stays: s.Begun(fleetv1.RestoreStepHold),
	}), nil
}
