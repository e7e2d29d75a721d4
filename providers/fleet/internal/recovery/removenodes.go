package recovery

import (
	"context"
	"fmt"

	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
)

// removeNodes deletes the Nodes of the lost machines: their Machines cannot if they were deleted while no API server responded. It is
// complete before the release, after which etcd has more members than serve expects.
func (c *Controller) removeNodes(ctx context.Context, s *scope) (operation.Outcome, error) {
	err := c.with(ctx, s, func(ctx context.Context, w Workload) error {
		for _, m := range s.recovery.Status.Members {
			if m.Machine == s.recovery.Spec.Survivor || m.Node == "" {
				continue
			}
			if err := w.DeleteNode(ctx, m.Node); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return operation.Waits(fmt.Sprintf("the Nodes of lost machines to be deleted: %v", err)), nil
	}
	return operation.Done("the Nodes of lost machines are deleted"), nil
}
