package clusterclass

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// observe marks the class as ready to be used: the topology controller and admission wait for that.
func (c *Controller) observe(_ context.Context, class *clusterv1.ClusterClass) (step.Result, error) {
	class.Status.ObservedGeneration = class.Generation
	return step.Done(), nil
}
