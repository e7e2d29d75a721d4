package machineset

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// remediate deletes Machines that somebody asked to remediate; scaling replaces them. A Machine is told so
// once it is seen to be on its way out. While preflight checks forbid to delete one, the result comes back.
func (c *Controller) remediate(ctx context.Context, s *scope) (step.Result, error) {
	result := step.Done()
	for _, m := range s.machines {
		if !condition.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition) {
			continue
		}
		blocked, err := c.remediateMachine(ctx, s, m)
		s.report(err)
		if blocked {
			result = step.Again(preflightBackstop)
		}
	}
	return result, nil
}

func (c *Controller) remediateMachine(ctx context.Context, s *scope, m *clusterv1.Machine) (blocked bool, err error) {
	if !m.DeletionTimestamp.IsZero() {
		return false, client.IgnoreNotFound(c.mark(ctx, m, condition.True(clusterv1.MachineOwnerRemediatedCondition)))
	}
	reason, err := c.preflightFailure(ctx, s)
	if err != nil {
		return false, err
	}
	if reason == "" {
		return false, c.delete(ctx, m)
	}
	return true, c.mark(ctx, m, condition.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.ConditionSeverityWarning,
		clusterv1.WaitingForRemediationReason, "%s", reason))
}

// mark sets a condition of a Machine, whose conditions others write too: only over the version that was read.
func (c *Controller) mark(ctx context.Context, m *clusterv1.Machine, as clusterv1.Condition) error {
	before := m.DeepCopy()
	condition.Set(m, as)
	if condition.SameState(*condition.Get(before, as.Type), *condition.Get(m, as.Type)) {
		return nil
	}
	condition.Stamp(m, before.Status.Conditions, c.Clock.Now())
	if err := c.Client.Status().Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing conditions of Machine %s: %w", m.Name, err)
	}
	return nil
}
