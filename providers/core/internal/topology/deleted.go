package topology

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleted only sets the condition: the Cluster controller deletes the objects.
func (c *Controller) deleted(_ context.Context, s *scope) (step.Result, error) {
	c.clean.Delete(s.cluster.UID)
	if c.hooks != nil {
		c.hooks.forget(s.cluster.UID)
	}
	c.stateDeletion(s, "")
	return step.Stop().WithConditions(deletedCondition(clusterv1.ConditionSeverityInfo, "")), nil
}

// deletedCondition returns condition TopologyReconciled of a Cluster that is being deleted.
func deletedCondition(severity clusterv1.ConditionSeverity, message string) clusterv1.Condition {
	return condition.False(clusterv1.TopologyReconciledV1Beta1Condition, severity, clusterv1.DeletedV1Beta1Reason, "%s", message)
}
