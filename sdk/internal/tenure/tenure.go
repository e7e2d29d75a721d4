// Package tenure ends a leader's writes on time.
//
// Leader election alone does not: a process that was suspended, or starved of CPU, while another replica acquired the lease continues
// where it stopped, with outdated decisions. It notices its loss only when it has tried to renew the lease for a while, and its
// writes reach the API server meanwhile. A Tenure watches the renewals and rejects writes as soon as the lease has not been renewed
// for so long that a leader that was running would have given up.
//
// What remains is a request that was sent in time and arrives late: the API server cannot know about leases.
package tenure

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// ErrOver is the error of rejected requests, and of renewals that come too late.
var ErrOver = errors.New("not sent: this process was the leader and has not renewed its lease in time, so another may lead")

// Tenure is the time in which a process is the leader: from the first successful renewal until one does not come in time. It does
// not start again.
type Tenure struct {
	limit time.Duration
	clock clock.PassiveClock

	mu sync.Mutex
	// renewed is when the last successful renewal was sent; zero before the process leads.
	renewed time.Time
	over    bool
	// ended is closed when the process finds that its lease was not renewed in time.
	ended chan struct{}
}

// New returns the tenure of a process that does not lead yet. limit is how long after a renewal its writes are sent, which must be
// shorter than the duration of the lease.
func New(limit time.Duration, c clock.PassiveClock) *Tenure {
	return &Tenure{limit: limit, clock: c, ended: make(chan struct{})}
}

// Check returns ErrOver if the process was the leader and may no longer be. Before it leads, it returns nil: every replica serves
// webhooks and rotates their certificates.
func (t *Tenure) Check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.late(t.clock.Now()) {
		return ErrOver
	}
	return nil
}

// late reports whether the tenure is over. The wall clock counts, too: the other one may stand still while a machine is suspended.
func (t *Tenure) late(now time.Time) bool {
	if !t.over && !t.renewed.IsZero() {
		if t.over = max(now.Sub(t.renewed), now.Round(0).Sub(t.renewed.Round(0))) >= t.limit; t.over {
			close(t.ended)
		}
	}
	return t.over
}

// Await returns ErrOver as soon as a write is rejected or a renewal comes too late, so that the process ends and another one can start
// from the current state. It returns nil when ctx is done.
func (t *Tenure) Await(ctx context.Context) error {
	select {
	case <-t.ended:
		return ErrOver
	case <-ctx.Done():
		return nil
	}
}

// renew records that a renewal that was sent at a time has succeeded. It returns ErrOver if it came too late: another process may have led
// meanwhile, and what this process knows and is doing is from before.
func (t *Tenure) renew(sent time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.late(sent) {
		return ErrOver
	}
	t.renewed = sent
	return nil
}

// release ends the tenure, if it has begun.
func (t *Tenure) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = t.over || !t.renewed.IsZero()
}

// Watch returns a lock whose renewals the tenure depends on. It must be used for leader election.
func (t *Tenure) Watch(l resourcelock.Interface) resourcelock.Interface {
	return &watched{Interface: l, tenure: t}
}

type watched struct {
	resourcelock.Interface
	tenure *Tenure
}

// Create implements resourcelock.Interface.
func (w *watched) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return w.write(ctx, record, w.Interface.Create)
}

// Update implements resourcelock.Interface.
func (w *watched) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return w.write(ctx, record, w.Interface.Update)
}

func (w *watched) write(
	ctx context.Context, record resourcelock.LeaderElectionRecord, send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	if record.HolderIdentity != w.Identity() {
		w.tenure.release()
		return send(ctx, record)
	}
	if err := w.tenure.Check(); err != nil {
		return err
	}
	sent := w.tenure.clock.Now()
	if err := send(ctx, record); err != nil {
		return err
	}
	return w.tenure.renew(sent)
}

// Guard makes the connections of a configuration reject writes while check, usually that of a Tenure, returns an error.
func Guard(config *rest.Config, check func() error) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &guard{next: next, check: check} })
}

type guard struct {
	next  http.RoundTripper
	check func() error
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if err := g.check(); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
	}
	return g.next.RoundTrip(r)
}

// WrappedRoundTripper returns the next transport, for libraries that look for connections to close.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }
