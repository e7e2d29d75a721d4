package topology

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// plan computes the plan, and watches the kinds of its objects.
func (c *Controller) plan(ctx context.Context, s *scope) (step.Result, error) {
	if err := c.WatchClass(ctx, s.cluster.GetClassKey()); err != nil {
		return step.Done(), err
	}
	planned, err := c.Planner.Plan(ctx, s.cluster)
	if err != nil {
		return step.Done(), err
	}
	s.plan = planned
	if planned.Hooks.HoldsCreation() {
		return waitForHooks(planned.Hooks), nil
	}
	return step.Done(), c.Watch(ctx, planned.Kinds)
}
