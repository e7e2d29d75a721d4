package cluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// finish removes the finalizer once no descendants are left.
func (c *Controller) finish(ctx context.Context, s *scope) (step.Result, error) {
	cluster := s.Cluster
	if controllerutil.ContainsFinalizer(cluster, clusterv1.ClusterFinalizer) {
		if result, err := c.allGone(ctx, cluster); err != nil || result.Ends() {
			return result, err
		}
		controllerutil.RemoveFinalizer(cluster, clusterv1.ClusterFinalizer)
		step.Event(ctx, "Deleted", "Cluster %s has been deleted", cluster.Name)
	}
	if c.forget != nil {
		c.forget(client.ObjectKeyFromObject(cluster))
	}
	return step.Done(), nil
}
