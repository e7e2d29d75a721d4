package connection

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// UnreachableAfter is how long a workload cluster must be unreachable before what waits for it is reported. A connection that
	// breaks for a moment, or a manager that has just started, must not cost a write.
	UnreachableAfter = 30 * time.Second
	// DefaultGrace is Connector.Grace if it is not set.
	DefaultGrace = 5 * time.Minute
)

// State is the connection to the workload cluster in one reconcile.
type State struct {
	// Workload is nil while there is no connection.
	Workload Workload
	// Reason is why there is no connection although there should be one.
	Reason string
	// Lost is true if the workload cluster has been unreachable for UnreachableAfter: what waits for it is reported.
	Lost bool
	// Down is true if it has been unreachable for Connector.Grace, since Since: its health is unknown. Until then, conditions keep
	// what was known.
	Down  bool
	Since time.Time
}

// Connector connects to workload clusters, and remembers which of them are unresponsive.
type Connector struct {
	Workloads Workloads
	Clock     clock.PassiveClock
	// Grace is how long conditions keep what was known of a workload cluster that is unreachable. Zero: DefaultGrace.
	Grace time.Duration

	outages  outages
	backoffs backoffs
}

// Connect gets the connection to the workload cluster. There is none before the first API server runs: steps that need it do
// nothing then, and the event of the connection triggers the next reconcile.
func (c *Connector) Connect(ctx context.Context, cp *snapshot.ControlPlane) (State, step.Result, error) {
	if !expected(cp) {
		return State{}, step.Done(), nil
	}
	workload, err := c.Workloads.Get(ctx, cp.Key())
	if err == nil {
		c.outages.end(cp.KCP.UID)
		return State{Workload: c.bound(cp.KCP.UID, workload)}, step.Done(), nil
	}
	if !remote.IsNotConnected(err) {
		return State{}, step.Done(), fmt.Errorf("connecting to the workload cluster: %w", err)
	}
	state := State{Reason: condition.Brief(err.Error())}
	if !cp.Initialized() {
		return state, step.Done(), nil
	}
	now := c.Clock.Now()
	state.Since = c.outages.begin(cp.KCP.UID, now)
	unreported, left := UnreachableAfter-now.Sub(state.Since), cmp.Or(c.Grace, DefaultGrace)-now.Sub(state.Since)
	state.Lost, state.Down = unreported <= 0, left <= 0
	return state, again(unreported, left), nil
}

// again returns the result that leads to a reconcile after the first of two times that has not passed yet.
func again(a, b time.Duration) step.Result {
	if next := soonest(max(a, 0), max(b, 0)); next > 0 {
		return step.Again(next)
	}
	return step.Done()
}

// Forget drops the memory of a deleted control plane.
func (c *Connector) Forget(uid types.UID) {
	c.outages.end(uid)
	c.backoffs.forget(uid)
}

// expected reports whether there should be a connection: there cannot be one before a machine runs.
func expected(cp *snapshot.ControlPlane) bool {
	return cp.Initialized() || slices.ContainsFunc(cp.Machines, func(m *snapshot.Machine) bool {
		return ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false)
	})
}

// outages remembers when workload clusters became unreachable.
type outages struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// begin returns since when the cluster has been unreachable: now, if there was no outage.
func (o *outages) begin(uid types.UID, now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since == nil {
		o.since = map[types.UID]time.Time{}
	}
	if _, out := o.since[uid]; !out {
		o.since[uid] = now
	}
	return o.since[uid]
}

func (o *outages) end(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.since, uid)
}
