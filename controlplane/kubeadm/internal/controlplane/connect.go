package controlplane

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/provider/remote"
	"sigs.k8s.io/cluster-api/provider/step"
)

// unreachableAfter is how long a workload cluster may be away before that is stated on its objects. A connection that
// breaks for a moment, or a manager that has just started, must not cost a write for every Machine.
const unreachableAfter = 30 * time.Second

// connect gets the connection to the workload cluster. There is none before the first API server runs, so its absence
// stops nothing: what needs it does not happen, and the event of its coming wakes us.
func (c *Controller) connect(ctx context.Context, s *scope) (step.Result, error) {
	if !s.reachable() {
		return step.Done(), nil
	}
	workload, err := c.Workloads.Get(ctx, s.key())
	if err == nil {
		s.workload = c.bound(s, workload)
		c.unreachable.ended(s.kcp.UID)
		return step.Done(), nil
	}
	if !remote.IsNotConnected(err) {
		return step.Result{}, fmt.Errorf("connecting to the workload cluster: %w", err)
	}
	s.waiting = brief(err.Error())
	if !s.begun() {
		return step.Done(), nil
	}
	left := unreachableAfter - c.unreachable.lasts(s.kcp.UID, c.Clock.Now())
	if left > 0 {
		return step.Again(left), nil
	}
	s.lost = true
	return step.Done(), nil
}

// reachable: before a machine is up there is nothing to connect to.
func (s *scope) reachable() bool {
	return s.begun() || slices.ContainsFunc(s.machines, func(m *machine) bool { return m.Status.InfrastructureReady })
}

// grace remembers since when workload clusters have been away.
type grace struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// lasts is for how long the cluster has been away, which begins now if it was not.
func (g *grace) lasts(uid types.UID, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.since == nil {
		g.since = map[types.UID]time.Time{}
	}
	if _, away := g.since[uid]; !away {
		g.since[uid] = now
	}
	return now.Sub(g.since[uid])
}

func (g *grace) ended(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.since, uid)
}
