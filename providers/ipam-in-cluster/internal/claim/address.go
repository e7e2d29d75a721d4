package claim

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/address"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/ledger"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// address creates the IPAddress of the claim, with the address that the pool has reserved.
func (c *Controller) address(ctx context.Context, s *scope) (step.Result, error) {
	existing, err := c.existing(ctx, s)
	switch {
	case err != nil:
		return step.Done(), err
	case existing == nil:
		s.claim.Status.AddressRef = ipamv1.IPAddressReference{}
		if result, err := c.create(ctx, s); err != nil || result.Ends() {
			return result, err
		}
	case !address.IsOurs(existing):
		return step.Done(),
			step.Terminal(failed(fmt.Errorf("IPAddress %s already exists, and was not created for this claim: delete it", existing.Name)))
	case !address.Belongs(existing, s.claim):
		return step.Wait(fmt.Sprintf("IPAddress %s of a previous IPAddressClaim to be deleted", existing.Name)).
			Because(inclusterv1.AllocationFailedReason).Severity(clusterv1.ConditionSeverityWarning), nil
	}
	s.claim.Status.AddressRef.Name = s.claim.Name
	return step.Done(), nil
}

// existing returns the IPAddress with the name of the claim; nil if there is none. If the claim had one, the API server decides.
func (c *Controller) existing(ctx context.Context, s *scope) (*ipamv1.IPAddress, error) {
	a := &ipamv1.IPAddress{}
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(s.claim), a)
	if apierrors.IsNotFound(err) && (s.claim.Status.AddressRef.Name != "" || !s.claim.DeletionTimestamp.IsZero()) {
		err = c.Live.Get(ctx, client.ObjectKeyFromObject(s.claim), a)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading IPAddress %s: %w", s.claim.Name, err)
	}
	return a, nil
}

// create creates the IPAddress if the pool has reserved an address.
func (c *Controller) create(ctx context.Context, s *scope) (step.Result, error) {
	if s.pool == nil {
		return step.Wait(s.key.String() + " to exist").Because(inclusterv1.PoolNotReadyReason).Severity(clusterv1.ConditionSeverityWarning), nil
	}
	reserved, ok := reservation(s.pool, s.claim)
	switch {
	case ok:
	case !s.pool.GetDeletionTimestamp().IsZero():
		return step.Wait(s.key.String() + " to be recreated, because it is being deleted").
			Because(inclusterv1.PoolNotReadyReason).Severity(clusterv1.ConditionSeverityWarning), nil
	case isExhausted(s.pool):
		return step.Wait("a free address of " + s.key.String()).
			Because(inclusterv1.PoolExhaustedReason).Severity(clusterv1.ConditionSeverityWarning), nil
	case isBusy(s.pool):
		return step.Wait(fmt.Sprintf("the IPAddresses of %d other IPAddressClaims of %s to be created", ledger.Total, s.key)).
			Because(inclusterv1.PoolBusyReason).Severity(clusterv1.ConditionSeverityWarning), nil
	default: // It takes moments, so it is not worth a write.
		return step.Wait("an address of " + s.key.String()).KeepCondition(), nil
	}
	// It need not be in the cache: an attempt to create it again fails.
	err := c.CreateIn(ctx, nil, address.New(s.claim, s.key, s.pool, reserved.Address))
	if err != nil && !step.IsStale(err) {
		return step.Done(), failed(fmt.Errorf("creating IPAddress %s: %w", s.claim.Name, err))
	}
	return step.Done(), err
}

func failed(err error) error {
	return &step.Error{Reason: inclusterv1.AllocationFailedReason, Err: err}
}

func reservation(p poolref.Pool, claim *ipamv1.IPAddressClaim) (inclusterv1.Reservation, bool) {
	items := ptr.Deref(p.PoolStatus().Reservations, inclusterv1.Reservations{}).Items
	i := slices.IndexFunc(items, func(r inclusterv1.Reservation) bool { return r.UID == claim.UID })
	if i < 0 {
		return inclusterv1.Reservation{}, false
	}
	return items[i], true
}

// isExhausted reports whether a pool has no free address. One whose addresses were not counted yet is not exhausted.
func isExhausted(p poolref.Pool) bool {
	counts := p.PoolStatus().Addresses
	return counts != nil && counts.Free <= 0
}

// isBusy reports whether a pool has as many reservations as it may have.
func isBusy(p poolref.Pool) bool {
	return len(ptr.Deref(p.PoolStatus().Reservations, inclusterv1.Reservations{}).Items) >= ledger.Total
}
