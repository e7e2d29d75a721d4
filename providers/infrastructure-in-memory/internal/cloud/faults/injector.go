package faults

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Injector has the current faults of a workload cluster, and injects them. It has its own lock: every request reads them first.
type Injector struct {
	clock  clock.Clock
	random *rand.Rand

	mu      sync.RWMutex
	current Faults
	changed chan struct{} // closed at the next change; nil without waiters
	ended   bool
}

// NewInjector returns an Injector without faults. random must be safe for concurrent use.
func NewInjector(c clock.Clock, random *rand.Rand) *Injector {
	return &Injector{clock: c, random: random}
}

// Current returns the faults.
func (i *Injector) Current() Faults {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.current
}

// wait returns the faults and a channel that is closed when they change; nil after the group is closed.
func (i *Injector) wait() (Faults, <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return Faults{}, nil
	}
	if i.changed == nil {
		i.changed = make(chan struct{})
	}
	return i.current, i.changed
}

// Set replaces the faults, which are valid.
func (i *Injector) Set(next Faults) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current = next
	i.wake()
}

// Close removes the faults forever, and ends all waits.
func (i *Injector) Close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current, i.ended = Faults{}, true
	i.wake()
}

func (i *Injector) wake() {
	if i.changed != nil {
		close(i.changed)
		i.changed = nil
	}
}

// Inject applies the faults to a request: it delays it, and returns ErrInjected if it should fail. Every server in
// front of the group calls it first.
func (i *Injector) Inject(ctx context.Context) error {
	f := i.Current()
	if f.Latency.Duration == 0 && f.ErrorRate == 0 && !f.Unresponsive {
		return nil
	}
	if err := i.sleep(ctx, f.Latency.Duration); err != nil {
		return err
	}
	if err := i.AwaitResponsive(ctx); err != nil {
		return err
	}
	if f.ErrorRate > 0 && i.random.Float64() < f.ErrorRate {
		return ErrInjected
	}
	return nil
}

// AwaitResponsive waits while the cluster is unresponsive.
func (i *Injector) AwaitResponsive(ctx context.Context) error {
	for {
		f, changed := i.wait()
		if !f.Unresponsive {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (i *Injector) sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := i.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// Dead reports whether a machine lost power.
func (i *Injector) Dead(machine string) bool {
	return slices.Contains(i.Current().DeadMachines, machine)
}
