package machineset

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
	"sigs.k8s.io/cluster-api/internal/step"
)

// remediate deletes Machines that somebody asked to remediate; scaling replaces them. A Machine is told so
// once it is seen to be on its way out. While preflight checks forbid to delete one, the result comes back.
func (c *Controller) remediate(ctx context.Context, s *scope) (step.Result, error) {
	result := step.Done()
	for _, m := range s.machines {
		if !condition.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition) {
			continue
		}
		if !m.DeletionTimestamp.IsZero() {
			if err := c.mark(ctx, m, condition.True(clusterv1.MachineOwnerRemediatedCondition)); client.IgnoreNotFound(err) != nil {
				return step.Done(), err
			}
			continue
		}
		reason, err := c.preflightFailure(ctx, s)
		if err != nil {
			return step.Done(), err
		}
		if reason == "" {
			if err := c.delete(ctx, m); err != nil {
				return step.Done(), err
			}
			continue
		}
		result = step.Again(preflightBackstop)
		err = c.mark(ctx, m, condition.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.ConditionSeverityWarning,
			clusterv1.WaitingForRemediationReason, "%s", reason))
		if err != nil {
			return result, err
		}
	}
	return result, nil
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
