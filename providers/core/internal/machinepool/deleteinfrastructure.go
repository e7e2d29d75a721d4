package machinepool

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteInfrastructure deletes the infrastructure object and waits until it is gone, with all machines.
func (c *Controller) deleteInfrastructure(ctx context.Context, s *scope) (step.Result, error) {
	return c.follow.Delete(ctx, &s.pool.Spec.Template.Spec.InfrastructureRef, s.pool, clusterv1.InfrastructureReadyCondition)
}
