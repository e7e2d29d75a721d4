package restore

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// latest compares the status with that in the API server: steps must not be repeated because the cache is old.
func (c *Controller) latest(ctx context.Context, s *scope) (step.Result, error) {
	if s.restore.Ended() {
		return step.Stop(), nil
	}
	live := &fleetv1.ControlPlaneRestore{}
	result, err := c.Latest(ctx, step.Reread(s.restore, live, func(live, cached *fleetv1.ControlPlaneRestore) bool {
		return live.Generation == cached.Generation && equality.Semantic.DeepEqual(live.Status, cached.Status)
	}))
	s.outdated = err != nil || result.Ends()
	return result, err
}
