package machine

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteInfrastructure deletes the infrastructure machine and waits until it is gone.
func (c *Controller) deleteInfrastructure(ctx context.Context, s *scope) (step.Result, error) {
	return c.follow.Delete(ctx, &s.machine.Spec.InfrastructureRef, s.machine, clusterv1.InfrastructureReadyV1Beta1Condition)
}
