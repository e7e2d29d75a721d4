package pool

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/ipam/incluster/internal/address"
	"sigs.k8s.io/cluster-api/provider/step"
)

// sweep deletes the IPAddresses of claims that do not exist: their finalizer was removed by others, or a process that was suspended
// created the IPAddress after the claim was deleted. The garbage collector keeps these, because the pool is an owner, too.
// IPAddresses that no claim controls are from users, and are kept.
func (c *Controller[T]) sweep(ctx context.Context, s *scope[T]) (step.Result, error) {
	var errs []error
	for i := range s.addresses {
		a := &s.addresses[i]
		uid := address.ClaimOf(a)
		if uid == "" || s.known[uid] {
			continue
		}
		exists, err := c.exists(ctx, s, types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.ClaimRef.Name}, uid)
		if err == nil && !exists {
			_, err = address.Release(ctx, c.Outside, a.DeepCopy())
		}
		errs = append(errs, err)
	}
	return step.Done(), errors.Join(errs...)
}
