package topology

import (
	"context"
	"errors"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// beforeDelete holds the deletion of a Cluster while hook BeforeClusterDelete blocks: the Cluster controller waits for the annotation that
// it sets.
func (c *Controller) beforeDelete(ctx context.Context, s *scope) (step.Result, error) {
	if c.Planner.Hooks == nil || lifecycle.IsOKToDelete(s.cluster) {
		return step.Done(), nil
	}
	answer, err := c.Planner.Hooks.Ask(ctx, s.cluster, lifecycle.Call{Hook: lifecycle.BeforeClusterDelete})
	notReady, waits := errors.AsType[*extension.NotReadyError](err)
	busy, isBusy := errors.AsType[*extension.BusyError](err)
	switch {
	case waits:
		c.stateDeletion(s, err.Error())
		return waitForDiscovery(notReady).WithConditions(deletedCondition(clusterv1.ConditionSeverityInfo, err.Error())), nil
	case isBusy:
		return waitForTurn(busy), nil
	case err != nil:
		report.Set(s.cluster, s.cluster.Generation, c.Clock.Now(), reconciledReport(nil, err))
		return step.Stop().WithConditions(deletedCondition(clusterv1.ConditionSeverityError, err.Error())), err
	}
	var outcome lifecycle.Outcome
	if outcome.Record(lifecycle.BeforeClusterDelete, answer) {
		c.stateDeletion(s, "Following hooks are blocking delete: "+blocking(outcome))
		return waitForHooks(outcome).WithConditions(deletedCondition(clusterv1.ConditionSeverityInfo, outcome.Message())), nil
	}
	lifecycle.MarkOKToDelete(s.cluster)
	return step.Done(), nil
}
