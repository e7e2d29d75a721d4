package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// orphanedMembers removes etcd members that have neither a Machine nor a Node.
func (c *Controller) orphanedMembers(ctx context.Context, s *scope) (step.Result, error) {
	return c.members.RemoveOrphanedMembers(ctx, s.membership())
}
