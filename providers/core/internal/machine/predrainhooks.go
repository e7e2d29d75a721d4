package machine

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// preDrainHooks waits until all pre-drain hooks have been removed.
func (c *Controller) preDrainHooks(_ context.Context, s *scope) (step.Result, error) {
	return c.hooks(s.machine, clusterv1.PreDrainDeleteHookSucceededV1Beta1Condition, clusterv1.PreDrainDeleteHookAnnotationPrefix), nil
}
