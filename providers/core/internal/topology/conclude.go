package topology

import (
	"context"
	"errors"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// conclude runs after every reconcile: it sends the event and sets condition TopologyReconciled.
func (c *Controller) conclude(ctx context.Context, s *scope, result step.Result, err error) (step.Result, error) {
	if s.cluster.DeletionTimestamp != nil || !s.hasTopology() {
		return result, err
	}
	c.recordLeftovers(s, err)
	s.done.announce(ctx, s.cluster)
	if s.stale {
		// The condition would describe an outdated Cluster.
		return result, err
	}
	if notReady, ok := errors.AsType[*plan.ClassNotReconciledError](err); ok {
		c.state(s, classNotReconciled(notReady), reconciledReport(nil, err))
		return step.Wait("ClusterClass " + notReady.Class + " to be reconciled"), nil
	}
	if notReady, ok := errors.AsType[*extension.NotReadyError](err); ok {
		c.state(s, reconciled(nil, err), reconciledReport(nil, err))
		return waitForDiscovery(notReady), nil
	}
	if busy, ok := errors.AsType[*extension.BusyError](err); ok {
		// It is about the calls of other Clusters: an existing condition stays.
		if condition.Get(s.cluster, clusterv1.TopologyReconciledV1Beta1Condition) == nil {
			c.state(s, reconciled(nil, err), reconciledReport(nil, err))
		}
		return waitForTurn(busy), nil
	}
	if err != nil && step.IsStale(err) {
		// The next reconcile sees the current objects; users need not know.
		return result, err
	}
	if err == nil {
		stateUpgradePlan(s.cluster, s.plan.Versions)
	}
	c.state(s, reconciled(s.plan, err), reconciledReport(s.plan, err))
	return result, err
}

func classNotReconciled(err *plan.ClassNotReconciledError) clusterv1.Condition {
	return condition.False(clusterv1.TopologyReconciledV1Beta1Condition, clusterv1.ConditionSeverityInfo,
		clusterv1.TopologyReconciledClusterClassNotReconciledV1Beta1Reason, "%s", err.Error())
}

// reconciled returns condition TopologyReconciled of a reconcile that ended with err. The plan may be nil if err is not.
func reconciled(planned *plan.Plan, err error) clusterv1.Condition {
	if err != nil {
		return condition.False(clusterv1.TopologyReconciledV1Beta1Condition, clusterv1.ConditionSeverityError,
			clusterv1.TopologyReconcileFailedV1Beta1Reason, "%s", err.Error())
	}
	if len(planned.Hooks.Blocking) > 0 {
		return condition.False(clusterv1.TopologyReconciledV1Beta1Condition, clusterv1.ConditionSeverityInfo,
			clusterv1.TopologyReconciledHookBlockingV1Beta1Reason, "%s", planned.Hooks.Message())
	}
	if reason, message, waiting := planned.Versions.Waiting(); waiting {
		return condition.False(clusterv1.TopologyReconciledV1Beta1Condition, clusterv1.ConditionSeverityInfo, reason, "%s", message)
	}
	return condition.True(clusterv1.TopologyReconciledV1Beta1Condition)
}
