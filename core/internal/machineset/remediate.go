package machineset

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
	"sigs.k8s.io/cluster-api/internal/step"
)

// remediate deletes Machines that somebody asked to remediate; scaling replaces them. While preflight checks
// forbid that, the result comes back.
func (c *Controller) remediate(ctx context.Context, s *scope) (step.Result, error) {
	result := step.Done()
	for _, m := range s.machines {
		if !m.DeletionTimestamp.IsZero() || !condition.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition) {
			continue
		}
		reason, err := c.preflightFailure(ctx, s)
		if err != nil {
			return step.Done(), err
		}
		before := m.DeepCopy()
		if reason != "" {
			result = step.Again(preflightBackstop)
			condition.Set(m, condition.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.ConditionSeverityWarning,
				clusterv1.WaitingForRemediationReason, "%s", reason))
			condition.Stamp(m, before.Status.Conditions, c.Clock.Now())
			if !condition.SameState(*condition.Get(before, clusterv1.MachineOwnerRemediatedCondition), *condition.Get(m, clusterv1.MachineOwnerRemediatedCondition)) {
				if err := c.patchStatus(ctx, m, before); err != nil {
					return step.Done(), err
				}
			}
			continue
		}
		if err := c.delete(ctx, m); err != nil {
			return step.Done(), err
		}
		condition.Set(m, condition.True(clusterv1.MachineOwnerRemediatedCondition))
		condition.Stamp(m, before.Status.Conditions, c.Clock.Now())
		if err := c.patchStatus(ctx, m, before); client.IgnoreNotFound(err) != nil {
			return step.Done(), err
		}
	}
	return result, nil
}

// patchStatus writes a Machine's conditions, which others write too: only over the version that was read.
func (c *Controller) patchStatus(ctx context.Context, m, before *clusterv1.Machine) error {
	if err := c.Client.Status().Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing conditions of Machine %s: %w", m.Name, err)
	}
	return nil
}
