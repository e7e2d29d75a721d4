package connection

import (
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

// UnreachableAfter is how long a workload cluster must be unreachable before conditions report it. A connection that breaks for
// a moment, or a manager that has just started, must not cost a write per Machine.
const UnreachableAfter = 30 * time.Second

// State is the connection to the workload cluster in one reconcile.
type State struct {
	// Workload is nil while there is no connection.
	Workload Workload
	// Reason is why there is no connection although there should be one.
	Reason string
	// Lost is true if the workload cluster has been unreachable for UnreachableAfter: its health is unknown.
	Lost bool
}

// Connector connects to workload clusters, and remembers which of them are unresponsive.
type Connector struct {
	Workloads Workloads
	Clock     clock.PassiveClock

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
	if left := UnreachableAfter - c.outages.duration(cp.KCP.UID, c.Clock.Now()); left > 0 {
		return state, step.Again(left), nil
	}
	state.Lost = true
	return state, step.Done(), nil
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

// duration returns how long the cluster has been unreachable, and starts an outage if there is none.
func (o *outages) duration(uid types.UID, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since == nil {
		o.since = map[types.UID]time.Time{}
	}
	if _, out := o.since[uid]; !out {
		o.since[uid] = now
	}
	return now.Sub(o.since[uid])
}

func (o *outages) end(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.since, uid)
}
