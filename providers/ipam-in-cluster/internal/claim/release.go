package claim

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/address"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// release deletes the IPAddress, then removes the finalizer. An IPAddress that was not created for this claim is kept.
func (c *Controller) release(ctx context.Context, s *scope) (step.Result, error) {
	if !controllerutil.ContainsFinalizer(s.claim, inclusterv1.ClaimFinalizer) {
		return step.Stop(), nil
	}
	existing, err := c.existing(ctx, s)
	if err != nil {
		return step.Done(), err
	}
	if existing != nil && address.Belongs(existing, s.claim) {
		released, err := address.Release(ctx, c.Clients, existing)
		if err != nil {
			return step.Done(), err
		}
		if !released {
			return step.Wait(fmt.Sprintf("the finalizers of IPAddress %s to be removed by other controllers", existing.Name)), nil
		}
	}
	controllerutil.RemoveFinalizer(s.claim, inclusterv1.ClaimFinalizer)
	return step.Stop(), nil
}
