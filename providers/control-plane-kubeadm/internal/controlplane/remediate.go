package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// remediate deletes an unhealthy Machine. The steps plan and scale create its replacement.
func (c *Controller) remediate(ctx context.Context, s *scope) (step.Result, error) {
	return c.remediator.Remediate(ctx, s.membership())
}
