package machine

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// preTerminateHooks waits until all pre-terminate hooks have been removed, even if the Node is not drained.
func (c *Controller) preTerminateHooks(_ context.Context, s *scope) (step.Result, error) {
	result := c.hooks(s.machine, clusterv1.PreTerminateDeleteHookSucceededV1Beta1Condition, clusterv1.PreTerminateDeleteHookAnnotationPrefix)
	if !result.Ends() && !deletionFailed(s.machine) {
		condition.Set(s.machine,
			condition.False(clusterv1.MachineNodeHealthyV1Beta1Condition, clusterv1.ConditionSeverityInfo, clusterv1.DeletingV1Beta1Reason, ""))
	}
	return result, nil
}
