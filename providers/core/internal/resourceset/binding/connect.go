package binding

import (
	"context"
	"time"

	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/outcome"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/workload"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// awayDelay is how long a workload cluster may be disconnected before that is reported. Connecting takes less.
	awayDelay = 30 * time.Second
	// serviceRetry is the delay before Service kubernetes is read again. The API server creates it within seconds of its start, without
	// an event for us: watching Services of all workload clusters would cost more.
	serviceRetry = 2 * time.Second
	// silentRetry is the delay before a cluster is tried again that is connected, but does not respond to requests. It is usually
	// disconnected, and connected again, in the meantime, which is an event.
	silentRetry = time.Minute
)

// connect waits for a connection.
func (c *Controller) connect(ctx context.Context, s *scope) (step.Result, error) {
	connected, err := c.workloads.Get(ctx, s.key())
	if remote.IsNotConnected(err) {
		return c.disconnected(s, err), nil
	}
	if err != nil {
		return step.Done(), err
	}
	ready, err := workload.NewSession(connected.Client, c.pause).Ready(ctx)
	switch {
	case ctx.Err() != nil:
		return step.Done(), ctx.Err()
	case err != nil:
		c.unreachable(s, err.Error())
		return step.WaitAtMost(silentRetry, err.Error()), nil
	case !ready:
		return step.WaitAtMost(serviceRetry, "Service kubernetes to exist in namespace default of the workload cluster"), nil
	}
	s.workload = connected
	return step.Done(), nil
}

// disconnected waits for a connection, which is an event, and reports it if that takes too long.
func (c *Controller) disconnected(s *scope, err error) step.Result {
	since, _ := remote.DisconnectedSince(err)
	left := awayDelay - c.Clock.Since(since)
	switch {
	case remote.IsRejected(err):
		c.unreachable(s, err.Error())
	case left > 0:
		return step.WaitAtMost(left, err.Error())
	default: // Reasons of failed connections differ each time.
		c.unreachable(s, "there is no connection to its API server")
	}
	return step.Wait(err.Error())
}

// unreachable records a failure for everything that should be applied.
func (c *Controller) unreachable(s *scope, why string) {
	for _, w := range s.work {
		last, _ := c.ledger.Of(s.key(), w.set.Name)
		c.ledger.Record(s.key(), w.set.Name, outcome.Outcome{Unreachable: why, Failures: last.Failures})
	}
}
