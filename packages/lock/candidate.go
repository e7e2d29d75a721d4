package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

const (
	// unreachableTimeout is for a cluster that does not respond: as long as other requests are repeated.
	unreachableTimeout = time.Minute
	// heldTimeout is for another process that renews the Lease. The user should know that it runs.
	heldTimeout = 5 * time.Minute
)

// candidate is the Lease as leader election uses it, which repeats requests silently, and without end: the candidate shows what
// it waits for, and gives up.
type candidate struct {
	resourcelock.Interface
	task Task
	// explain formats an error for users.
	explain func(error) string
	clock   clock.PassiveClock
	say     func(format string, args ...any)
	giveUp  context.CancelCauseFunc

	mu      sync.Mutex
	won     bool
	failing time.Time // since when requests fail; zero if they do not
	held    time.Time // since when another process is waited for; zero if it is not
	holder  string
}

// Get reads the Lease.
func (c *candidate) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := c.Interface.Get(ctx)
	c.observe("read", err)
	if err == nil {
		c.observeHolder(record.HolderIdentity)
	}
	return record, raw, err
}

// Create creates the Lease.
func (c *candidate) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	err := c.Interface.Create(ctx, r)
	c.observeWrite("create", err)
	return err
}

// Update acquires, renews or releases the Lease.
func (c *candidate) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	err := c.Interface.Update(ctx, r)
	c.observeWrite(c.update(r), err)
	return err
}

// elected reports whether the Lease was acquired.
func (c *candidate) elected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.won
}

// update returns what an update does: a released Lease has no holder.
func (c *candidate) update(r resourcelock.LeaderElectionRecord) string {
	switch {
	case r.HolderIdentity == "":
		return "release"
	case c.elected():
		return "renew"
	}
	return "acquire"
}

func (c *candidate) observeWrite(what string, err error) {
	c.observe(what, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.won = c.won || err == nil
}

// observe follows whether requests fail; what is what a request does with the Lease.
// Once the Lease is acquired, leader election gives up by itself.
func (c *candidate) observe(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		c.failing = time.Time{}
		return
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	limit := unreachableTimeout
	if c.won {
		limit = renewal
	}
	if c.failing.IsZero() {
		c.failing = c.clock.Now()
		c.tell("Cannot %s %s in the %s, trying again for up to %s: %s", what, c.describe(), c.task.Cluster, limit, c.explain(err))
	}
	if !c.won && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || c.clock.Since(c.failing) >= limit) {
		c.giveUp(fmt.Errorf("cannot %s %s in the %s: %w", what, c.describe(), c.task.Cluster, err))
	}
}

// observeHolder follows whether another process has the Lease.
func (c *candidate) observeHolder(holder string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.won || holder == "" || holder == c.Identity() {
		return
	}
	if c.holder != holder {
		c.holder, c.held = holder, c.clock.Now()
		c.tell("Waiting for up to %s for another clusterctl that %s and has %s: %s",
			heldTimeout, c.task.Does, c.describe(), describe(parse(holder)))
	}
	if c.clock.Since(c.held) >= heldTimeout {
		c.giveUp(fmt.Errorf("another clusterctl %s: %s has had %s for %s: run the same command again when it has finished",
			c.task.Does, describe(parse(holder)), c.describe(), heldTimeout))
	}
}

func (c *candidate) tell(format string, args ...any) { c.say(format, args...) }

func (c *candidate) describe() string { return "Lease " + c.Describe() }
