package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// scale takes the action that the step plan has decided on.
func (c *Controller) scale(ctx context.Context, s *scope) (step.Result, error) {
	return c.scaler.Scale(ctx, s.membership(), s.connection.Workload, s.action, s.newCA)
}
