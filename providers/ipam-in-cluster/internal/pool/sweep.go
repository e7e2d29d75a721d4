package pool

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/address"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// sweep deletes the IPAddresses of claims that do not exist: another client removed their finalizer, or a process that was suspended
// created the IPAddress after the claim was deleted. The garbage collector keeps these, because the pool is an owner, too.
// IPAddresses of users are kept.
func (c *Controller[T]) sweep(ctx context.Context, s *scope[T]) (step.Result, error) {
	var errs []error
	for i := range s.addresses {
		a := &s.addresses[i]
		if !address.IsOurs(a) || s.known[address.ClaimOf(a)] {
			continue
		}
		needed, err := c.needed(ctx, a)
		if err == nil && !needed {
			_, err = address.Release(ctx, c.Clients, a.DeepCopy())
		}
		errs = append(errs, err)
	}
	return step.Done(), errors.Join(errs...)
}

// needed reports whether an address belongs to its claim in the API server.
func (c *Controller[T]) needed(ctx context.Context, a *ipamv1.IPAddress) (bool, error) {
	claim, key := &ipamv1.IPAddressClaim{}, types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.ClaimRef.Name}
	if err := c.Live.Get(ctx, key, claim); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading IPAddressClaim %s: %w", key, err)
	}
	return address.Belongs(a, claim), nil
}
