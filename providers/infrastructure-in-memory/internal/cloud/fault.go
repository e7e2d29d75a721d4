package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrInjected is the error injected by Faults.ErrorRate.
var ErrInjected = errors.New("injected fault")

// Faults are the injected faults of a workload cluster. The zero value is a healthy cluster. They are declarative:
// SetFaults replaces all faults, so removing a fault repairs it. An example in JSON:
//
//	{"latency": "200ms", "errorRate": 0.1, "unresponsive": false, "deadMachines": ["cp-abcde"]}
type Faults struct {
	// Latency is added to every request before it is processed.
	Latency metav1.Duration `json:"latency,omitzero"`

	// ErrorRate is the fraction of requests, from 0 to 1, that fail with an internal error.
	ErrorRate float64 `json:"errorRate,omitempty"`

	// Unresponsive accepts connections, but does not respond to requests until the fault is removed.
	Unresponsive bool `json:"unresponsive,omitempty"`

	// DeadMachines are the names of machines that lost power: all conditions of their Node become Unknown, their Pods
	// become not ready and cannot be stopped, their etcd member and API server are unreachable. A dead machine without a
	// Node does not get one.
	DeadMachines []string `json:"deadMachines,omitempty"`

	// Emulate selects the behavior of API server and etcd: EmulateV17, or current Kubernetes if it is empty.
	Emulate string `json:"emulate,omitempty"`
}

// EmulateV17 restricts API servers and etcd members to the features of Cluster API v1.7's in-memory provider.
const EmulateV17 = "v1.7"

// Limits of faults: a request waits on a goroutine, and every dead machine is looked up.
const (
	maxLatency      = time.Hour
	maxDeadMachines = 1000
)

// ParseFaults reads Faults from JSON. Unknown fields and values out of range are errors.
func ParseFaults(text string) (Faults, error) {
	var f Faults
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return Faults{}, fmt.Errorf("parse faults: %w", err)
	}
	if decoder.More() {
		return Faults{}, errors.New("parse faults: more than one JSON object")
	}
	return f, f.validate()
}

func (f Faults) validate() error {
	if f.Latency.Duration < 0 {
		return fmt.Errorf("faults: latency is %s: it must not be negative", f.Latency.Duration)
	}
	if f.ErrorRate < 0 || f.ErrorRate > 1 {
		return fmt.Errorf("faults: errorRate is %v: it must be from 0 to 1", f.ErrorRate)
	}
	if f.Emulate != "" && f.Emulate != EmulateV17 {
		return fmt.Errorf("faults: emulate is %q: only %q can be emulated", f.Emulate, EmulateV17)
	}
	if f.Latency.Duration > maxLatency {
		return fmt.Errorf("faults: latency is %s: it must be at most %s", f.Latency.Duration, maxLatency)
	}
	if len(f.DeadMachines) > maxDeadMachines {
		return fmt.Errorf("faults: deadMachines has %d entries: at most %d are allowed", len(f.DeadMachines), maxDeadMachines)
	}
	return nil
}

func (f Faults) equal(other Faults) bool {
	return f.Latency == other.Latency && f.ErrorRate == other.ErrorRate && f.Unresponsive == other.Unresponsive && f.Emulate == other.Emulate &&
		slices.Equal(f.DeadMachines, other.DeadMachines)
}

// faults holds a group's Faults, with its own lock: every request reads them first.
type faults struct {
	mu      sync.RWMutex
	current Faults
	changed chan struct{} // closed at the next change; nil without waiters
	ended   bool
}

func (f *faults) get() Faults {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.current
}

// wait returns the faults and a channel that is closed when they change; nil after the group is closed.
func (f *faults) wait() (Faults, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return Faults{}, nil
	}
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.current, f.changed
}

func (f *faults) set(next Faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = next
	f.wake()
}

func (f *faults) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current, f.ended = Faults{}, true
	f.wake()
}

func (f *faults) wake() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// Faults returns the injected faults.
func (g *Group) Faults() Faults { return g.faults.get() }

// SetFaults replaces the injected faults, and powers machines off and on accordingly: also those that an earlier process
// powered off, according to the journal.
func (g *Group) SetFaults(next Faults) error {
	if err := next.validate(); err != nil {
		return err
	}
	next.DeadMachines = slices.Sorted(slices.Values(next.DeadMachines))
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrGroupDeleted
	}
	before := g.faults.get()
	if !g.faultsSet {
		before.DeadMachines, g.faultsSet = g.unreachableNodes(), true
	}
	if before.equal(next) && g.faults.get().equal(next) {
		return nil
	}
	g.faults.set(next)
	defer g.broadcast()
	for _, machine := range next.DeadMachines {
		if !slices.Contains(before.DeadMachines, machine) {
			if err := g.powerOff(machine); err != nil {
				return err
			}
		}
	}
	for _, machine := range before.DeadMachines {
		if !slices.Contains(next.DeadMachines, machine) {
			if err := g.powerOn(machine); err != nil {
				return err
			}
		}
	}
	return nil
}

// Dead reports whether a machine lost power.
func (g *Group) Dead(machine string) bool {
	return slices.Contains(g.faults.get().DeadMachines, machine)
}

// InjectFaults applies the faults to a request: it delays it, and returns ErrInjected if it should fail. Every server in
// front of the group calls it first.
func (g *Group) InjectFaults(ctx context.Context) error {
	f := g.faults.get()
	if f.Latency.Duration == 0 && f.ErrorRate == 0 && !f.Unresponsive {
		return nil
	}
	if err := g.sleep(ctx, f.Latency.Duration); err != nil {
		return err
	}
	if err := g.AwaitResponsive(ctx); err != nil {
		return err
	}
	if f.ErrorRate > 0 && g.random.Float64() < f.ErrorRate {
		return ErrInjected
	}
	return nil
}

// AwaitResponsive waits while the cluster is unresponsive.
func (g *Group) AwaitResponsive(ctx context.Context) error {
	for {
		f, changed := g.faults.wait()
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

func (g *Group) sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := g.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}
