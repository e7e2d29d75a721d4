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

// ErrInjected is the failure that Faults.ErrorRate asks for.
var ErrInjected = errors.New("injected fault: the request was chosen to fail")

// Faults is what is wrong with a workload cluster, on demand. The zero value is a healthy cluster. It
// is declarative: SetFaults replaces whatever was wrong before, so taking a fault out of it repairs it.
// Encoded as JSON it reads, for example,
//
//	{"latency": "200ms", "errorRate": 0.1, "unresponsive": false, "deadMachines": ["cp-abcde"]}
type Faults struct {
	// Latency is added to every request before it is looked at.
	Latency metav1.Duration `json:"latency,omitzero"`

	// ErrorRate is the share of requests, from 0 to 1, that fail with an internal error.
	ErrorRate float64 `json:"errorRate,omitempty"`

	// Unresponsive lets connections be made but answers no request until the fault is gone.
	Unresponsive bool `json:"unresponsive,omitempty"`

	// DeadMachines names machines that lost their power: all that is known of their Node becomes unknown, their
	// Pods not ready and impossible to stop, their etcd member and API server unreachable. A machine that is
	// named before it has a Node gets none until it is named no more.
	DeadMachines []string `json:"deadMachines,omitempty"`

	// Emulate says whose API server and etcd the cluster seems to have: EmulateV17, or those of a present Kubernetes
	// when it is empty.
	Emulate string `json:"emulate,omitempty"`
}

// EmulateV17 are API servers and etcd members that know no more than those of Cluster API v1.7's in-memory provider.
const EmulateV17 = "v1.7"

// What faults may ask for at most: a request waits on a goroutine, and every dead machine is looked for.
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
		return Faults{}, errors.New("parse faults: there is more than one JSON object")
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
		return fmt.Errorf("faults: latency is %s: it must not be above %s", f.Latency.Duration, maxLatency)
	}
	if len(f.DeadMachines) > maxDeadMachines {
		return fmt.Errorf("faults: deadMachines has %d entries: %d are possible", len(f.DeadMachines), maxDeadMachines)
	}
	return nil
}

func (f Faults) equal(other Faults) bool {
	return f.Latency == other.Latency && f.ErrorRate == other.ErrorRate && f.Unresponsive == other.Unresponsive && f.Emulate == other.Emulate &&
		slices.Equal(f.DeadMachines, other.DeadMachines)
}

// faults holds a group's Faults, under a lock of its own: a request reads them before anything else.
type faults struct {
	mu      sync.RWMutex
	current Faults
	changed chan struct{} // closed at the next change; nil when nobody waits
	ended   bool
}

func (f *faults) get() Faults {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.current
}

// wait returns the faults and a channel closed when they change; nil once the group ended.
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

// Faults returns what is wrong with the cluster.
func (g *Group) Faults() Faults { return g.faults.get() }

// SetFaults replaces what is wrong with the cluster, and lets machines die or come back accordingly: also those that
// an earlier process let die, whose silence is in the journal.
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
		before.DeadMachines, g.faultsSet = g.silent(), true
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

// Dead reports whether a machine lost its power.
func (g *Group) Dead(machine string) bool {
	return slices.Contains(g.faults.get().DeadMachines, machine)
}

// Suffer lets one request feel the cluster's faults: it waits as long as they say, and returns
// ErrInjected when the request is to fail. Every server in front of the group calls it first.
func (g *Group) Suffer(ctx context.Context) error {
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

// AwaitResponsive waits as long as nothing is to be answered.
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
