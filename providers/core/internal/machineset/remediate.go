package machineset

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// remediate deletes Machines that are marked for remediation; scaling replaces them. A Machine's condition becomes True once the
// cache shows the deletion. While a preflight check prevents remediation, the result requeues the MachineSet.
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
		return false, c.SetConditions(ctx, m, condition.True(clusterv1.MachineOwnerRemediatedCondition))
	}
	reason, err := c.preflightFailure(ctx, s)
	if err != nil {
		return false, err
	}
	if reason == "" {
		return false, c.delete(ctx, m)
	}
	return true, c.SetConditions(ctx, m, condition.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.ConditionSeverityWarning,
		clusterv1.WaitingForRemediationReason, "%s", reason))
}
