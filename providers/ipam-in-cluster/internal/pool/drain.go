package pool

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// drain removes the finalizer once no address is allocated. The write fails if another process has reserved an address meanwhile.
func (c *Controller[T]) drain(ctx context.Context, s *scope[T]) (step.Result, error) {
	if !controllerutil.ContainsFinalizer(s.pool, inclusterv1.PoolFinalizer) {
		return step.Stop(), nil
	}
	l, err := c.ledger(ctx, s)
	if err != nil {
		return step.Done(), err
	}
	used := len(s.addresses) + len(l.Open())
	if used == 0 {
		live, err := poolref.LiveAddresses(ctx, c.Live, s.key)
		if err != nil {
			return step.Done(), err
		}
		used = len(live)
	}
	if used > 0 {
		return step.Wait(fmt.Sprintf("the IPAddresses of the pool to be released (%d left): delete their IPAddressClaims", used)).
			Because(inclusterv1.PoolInUseReason), nil
	}
	c.setComplete(s, false)
	c.setRecount(s, nil)
	controllerutil.RemoveFinalizer(s.pool, inclusterv1.PoolFinalizer)
	return step.Stop(), nil
}
