package orphan

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/address"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// release removes the finalizer if the claim does not exist in the API server.
func (c *Controller) release(ctx context.Context, a *ipamv1.IPAddress) (step.Result, error) {
	claim, key := &ipamv1.IPAddressClaim{}, types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.ClaimRef.Name}
	switch err := c.Live.Get(ctx, key, claim); {
	case err == nil && address.Belongs(a, claim):
		return step.Stop(), nil // The deletion of the claim releases the address.
	case err != nil && !apierrors.IsNotFound(err):
		return step.Done(), fmt.Errorf("reading IPAddressClaim %s: %w", key, err)
	}
	controllerutil.RemoveFinalizer(a, inclusterv1.AddressFinalizer)
	return step.Done(), nil
}
