package pool

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// protect adds the finalizer before an address is reserved.
func (c *Controller[T]) protect(_ context.Context, s *scope[T]) (step.Result, error) {
	controllerutil.AddFinalizer(s.pool, inclusterv1.PoolFinalizer)
	return step.Checkpoint(), nil
}
