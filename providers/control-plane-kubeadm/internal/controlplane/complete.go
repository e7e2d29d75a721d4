package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// complete creates what Machines refer to and does not exist, because the creation of the Machine was interrupted.
func (c *Controller) complete(ctx context.Context, s *scope) (step.Result, error) {
	return c.machines.Complete(ctx, s.ControlPlane)
}
