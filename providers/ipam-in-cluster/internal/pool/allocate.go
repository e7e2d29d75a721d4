package pool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/ledger"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/space"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// allocate reserves addresses for the claims that wait, and counts the addresses.
func (c *Controller[T]) allocate(ctx context.Context, s *scope[T]) (step.Result, error) {
	addresses, invalid := space.Parse(s.pool.PoolSpec(), field.NewPath("spec"))
	if len(invalid) > 0 {
		return step.Done(), step.Terminal(&step.Error{Reason: inclusterv1.InvalidSpecReason, Err: invalid.ToAggregate()})
	}
	l, err := c.ledger(ctx, s)
	if err != nil {
		return step.Done(), err
	}
	given, err := c.assign(ctx, s, l, addresses)
	if err != nil {
		return step.Done(), err
	}
	status, counts := s.pool.PoolStatus(), l.Counts(addresses)
	if given == 0 && status.Addresses != nil {
		if *status.Addresses == counts {
			c.setRecount(s, nil)
			return step.Done(), nil // Not worth a write only to drop reservations that are done.
		}
		if left := c.recountIn(s, *status.Addresses, counts); left > 0 {
			return step.Again(left), nil
		}
	}
	c.setRecount(s, nil)
	status.Addresses = &counts
	before := ptr.Deref(status.Reservations, inclusterv1.Reservations{})
	if !slices.Equal(before.Items, l.Open()) {
		status.Reservations = &inclusterv1.Reservations{Sequence: before.Sequence + 1, Writer: c.writer, Items: l.Open()}
	}
	return step.Done(), nil
}

// ledger returns the addresses of the pool in the cache, with the reservations of claims that exist.
func (c *Controller[T]) ledger(ctx context.Context, s *scope[T]) (*ledger.Ledger, error) {
	l, reservations := ledger.New(s.addresses), ptr.Deref(s.pool.PoolStatus().Reservations, inclusterv1.Reservations{})
	if reservations.Writer != c.writer {
		c.setComplete(s, false) // Before a change of this process hides that of another one.
	}
	for _, r := range reservations.Items {
		exists, err := c.exists(ctx, s, types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, r.UID)
		if err != nil {
			return nil, err
		}
		if exists {
			l.Reserve(r)
		}
	}
	return l, nil
}

// assign reserves addresses for the claims that wait, in memory, and returns how many.
func (c *Controller[T]) assign(ctx context.Context, s *scope[T], l *ledger.Ledger, addresses space.Space) (int, error) {
	waiting := l.Waiting(s.claims)
	if len(waiting) == 0 || !l.HasFree(addresses) { // An address that the cache still has is released by an event.
		return 0, nil
	}
	if !c.isComplete(s) {
		live, err := poolref.LiveAddresses(ctx, c.Live, s.key)
		if err != nil {
			return 0, fmt.Errorf("looking for allocated addresses: %w", err)
		}
		c.setComplete(s, contains(s.addresses, live))
		l.Add(live)
		waiting = l.Waiting(s.claims)
	}
	return l.Assign(addresses, waiting), nil
}

// countDelay is how long new numbers of addresses are held back, so that many releases are one write: no claim waits for them, and only
// users read them.
const countDelay = time.Second

// recountIn returns after how long new numbers must be written. Numbers that claims read, because the pool was exhausted or is now,
// and those of another spec are written immediately.
func (c *Controller[T]) recountIn(s *scope[T], before, after inclusterv1.InClusterIPPoolStatusIPAddresses) time.Duration {
	if before.Total != after.Total || (before.Free <= 0) != (after.Free <= 0) {
		return 0
	}
	now := c.Clock.Now()
	c.mu.Lock()
	due, waits := c.recounts[s.pool.GetUID()]
	c.mu.Unlock()
	if !waits {
		due = now.Add(countDelay)
		c.setRecount(s, &due)
	}
	return due.Sub(now)
}

func (c *Controller[T]) setRecount(s *scope[T], due *time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if due == nil {
		delete(c.recounts, s.pool.GetUID())
	} else {
		c.recounts[s.pool.GetUID()] = *due
	}
}

// isComplete reports whether every address of the pool is in the cache or reserved: this process made all changes of the reservations
// since the cache had all IPAddresses of the API server, and it drops only reservations whose IPAddress is in its cache.
func (c *Controller[T]) isComplete(s *scope[T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.complete[s.pool.GetUID()]
}

func (c *Controller[T]) setComplete(s *scope[T], complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if complete {
		c.complete[s.pool.GetUID()] = true
	} else {
		delete(c.complete, s.pool.GetUID())
	}
}

// contains reports whether the cache has all addresses of the API server.
func contains(cached, live []ipamv1.IPAddress) bool {
	known := make(map[types.UID]bool, len(cached))
	for i := range cached {
		known[cached[i].UID] = true
	}
	return !slices.ContainsFunc(live, func(a ipamv1.IPAddress) bool { return !known[a.UID] })
}
