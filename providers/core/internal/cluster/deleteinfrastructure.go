package cluster

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteInfrastructure deletes the infrastructure object after all Machines, and waits until it is gone.
func (c *Controller) deleteInfrastructure(ctx context.Context, s *scope) (step.Result, error) {
	cluster := s.Cluster
	return c.follow.DeleteOnce(ctx, &cluster.Spec.InfrastructureRef, cluster, clusterv1.InfrastructureReadyV1Beta1Condition,
		func(ctx context.Context) (step.Result, error) { return c.allGone(ctx, cluster) })
}
