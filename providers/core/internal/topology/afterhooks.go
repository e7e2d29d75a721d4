package topology

import (
	"context"
	"errors"

	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// afterHooks calls the hooks of what has been completed, ends the record of an upgrade by several steps, and waits while hooks block. It is
// the last step: an extension that fails keeps nothing else from being reconciled.
func (c *Controller) afterHooks(ctx context.Context, s *scope) (step.Result, error) {
	ends := s.plan.Versions.Complete() && lifecycle.Step(s.cluster) != ""
	var initialized, upgraded []lifecycle.Call
	if c.Planner.Hooks != nil {
		if call, due := lifecycle.Initialized(s.cluster); due {
			initialized = []lifecycle.Call{call}
		}
		upgraded = lifecycle.AfterUpgrade(s.cluster, s.plan.Versions)
	}
	if ends || len(initialized) > 0 || len(upgraded) > 0 && !c.hooks.remembers(s.cluster, upgraded[0]) {
		if result, err := c.waitIfOutdated(ctx, s); err != nil || result.Ends() {
			return result, err
		}
	}
	err := errors.Join(c.afterHooksInOrder(ctx, s, initialized), c.afterHooksInOrder(ctx, s, upgraded))
	if ends {
		lifecycle.MarkStep(s.cluster, "")
	}
	return waitForHooks(s.plan.Hooks), err
}

// afterHooksInOrder calls hooks until one of them fails or blocks.
func (c *Controller) afterHooksInOrder(ctx context.Context, s *scope, calls []lifecycle.Call) error {
	for _, call := range calls {
		answer, err := c.Planner.Hooks.Ask(ctx, s.cluster, call)
		if err != nil || s.plan.Hooks.Record(call.Hook, answer) {
			return err
		}
		lifecycle.MarkCalled(s.cluster, call.Hook)
	}
	return nil
}
