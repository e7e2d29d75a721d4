package cluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// finalizer adds the finalizer, so that this controller runs the deletion.
func (c *Controller) finalizer(_ context.Context, s *scope) (step.Result, error) {
	if !started(s.Cluster) {
		return step.Stop(), nil
	}
	if controllerutil.AddFinalizer(s.Cluster, clusterv1.ClusterFinalizer) {
		return step.Checkpoint(), nil
	}
	return step.Done(), nil
}
