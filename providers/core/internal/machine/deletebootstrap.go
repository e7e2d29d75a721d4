package machine

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteBootstrap deletes the bootstrap config and waits until it is gone.
func (c *Controller) deleteBootstrap(ctx context.Context, s *scope) (step.Result, error) {
	return c.follow.Delete(ctx, &s.machine.Spec.Bootstrap.ConfigRef, s.machine, clusterv1.BootstrapReadyV1Beta1Condition)
}
