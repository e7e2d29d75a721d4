package restore

import (
	"context"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// latest ends the reconcile if the cache has an old copy of the restore.
func (c *Controller) latest(ctx context.Context, s *scope) (step.Result, error) {
	return operation.Latest(ctx, c.Clients, s.Run, s.restore, &fleetv1.ControlPlaneRestore{},
		func(r *fleetv1.ControlPlaneRestore) any { return r.Status })
}
