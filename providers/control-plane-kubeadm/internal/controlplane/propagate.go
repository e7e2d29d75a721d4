package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// propagate updates Machines in place: labels, annotations, timeouts and our hook.
func (c *Controller) propagate(ctx context.Context, s *scope) (step.Result, error) {
	return c.machines.Propagate(ctx, s.ControlPlane)
}
