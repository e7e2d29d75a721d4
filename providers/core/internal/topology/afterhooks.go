package topology

import (
	"context"
	"errors"

	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// afterHooks calls the hooks of what has been completed, and waits while others block. It is the last step: an extension that fails keeps
// nothing else from being reconciled.
func (c *Controller) afterHooks(ctx context.Context, s *scope) (step.Result, error) {
	if c.Planner.Hooks == nil {
		return step.Done(), nil
	}
	due := lifecycle.After(s.cluster, s.plan.Versions)
	if len(due) > 0 {
		if result, err := c.waitIfOutdated(ctx, s); err != nil || result.Ends() {
			return result, err
		}
	}
	var errs []error
	for _, call := range due {
		if _, err := c.Planner.Hooks.Ask(ctx, s.cluster, call); err != nil {
			errs = append(errs, err)
			continue
		}
		lifecycle.MarkCalled(s.cluster, call.Hook)
	}
	return waitForHooks(s.plan.Hooks), errors.Join(errs...)
}
