package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// preTerminate removes the etcd members of Machines that are being deleted, and then our hook.
func (c *Controller) preTerminate(ctx context.Context, s *scope) (step.Result, error) {
	return c.members.PreTerminate(ctx, s.membership())
}
