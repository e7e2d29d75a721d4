package cluster

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteControlPlane deletes the control plane object after the workers, and waits until it is gone.
func (c *Controller) deleteControlPlane(ctx context.Context, s *scope) (step.Result, error) {
	cluster := s.Cluster
	return c.follow.DeleteOnce(ctx, &cluster.Spec.ControlPlaneRef, cluster, clusterv1.ControlPlaneReadyV1Beta1Condition,
		func(ctx context.Context) (step.Result, error) { return c.workersGone(ctx, cluster) })
}
