package recovery

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// removeNodes deletes the Nodes of the lost machines: their Machines cannot if they were deleted while no API server responded.
func (c *Controller) removeNodes(ctx context.Context, s *scope) (step.Result, error) {
	if s.completed(nodesStep) {
		return step.Done(), nil
	}
	now := c.Clock.Now()
	s.begin(nodesStep, now)
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
		return s.waits(nodesStep, now, "the Nodes of lost machines to be deleted: %v", err)
	}
	s.complete(nodesStep, now, "the Nodes of lost machines are deleted")
	// After the release, etcd has more members than serve expects.
	return step.WaitAtMost(poll, "the mark of the Nodes to be written"), nil
}
