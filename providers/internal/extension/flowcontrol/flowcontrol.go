// Package flowcontrol decides which calls of extensions are sent, so that a server that is slow or dead does not occupy all workers of a
// controller, and other Clusters are reconciled without delay.
//
//   - A server gets a limited number of calls at the same time. A further one waits only while the others are fast:
//     until the oldest one has taken a second. Then it is busy, and the caller comes back later.
//   - After a call of a handler has ended with its timeout, further calls of that handler fail at once, like that one. Ten
//     seconds later, one call is sent to find out whether it responds again; until it has ended, others fail at once.
//
// A new version of an ExtensionConfig begins without calls and failures.
//
// What does not belong here: the requests (package wire), and what a failed call means (package extension).
package flowcontrol

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// busyAfter is how long the oldest call takes while others wait: five times as long as patches should take.
	busyAfter = time.Second
	// Pause is the time after a timeout until the handler is called again. It is as long as the default timeout, so that a dead server
	// occupies one worker half of the time.
	Pause = 10 * time.Second
)

// ErrBusy means that a call was not sent, because the server has too many calls in progress.
var ErrBusy = errors.New("its server has too many calls in progress")

// Limiter limits the calls of all servers. It is safe for concurrent use.
type Limiter struct {
	parallel int
	clock    clock.Clock

	mu      sync.Mutex
	servers map[string]*server
}

// New returns a Limiter for servers that get at most this many calls at the same time; at least one.
func New(parallel int, clock clock.Clock) *Limiter {
	return &Limiter{parallel: max(parallel, 1), clock: clock, servers: map[string]*server{}}
}

// Handler identifies a handler.
type Handler struct {
	// Server is the name of the ExtensionConfig, and Version changes with its spec.
	Server, Version string
	// Name is the name of the handler.
	Name string
}

// server is a version of an ExtensionConfig. It is guarded by Limiter.mu.
type server struct {
	version  string
	calls    []*Call // in progress, the oldest first
	failures map[string]*failure
	// ended is closed when a call ends.
	ended chan struct{}
}

// failure is that of a handler whose last call has ended with its timeout.
type failure struct {
	err error
	// until is when the next call is sent.
	until time.Time
	// probed is set while that call is in progress.
	probed bool
}

// Call is a call in progress.
type Call struct {
	limiter *Limiter
	server  *server
	handler string
	begun   time.Time
}

// Begin waits until a call may be sent. Without an error, the caller must call End. Errors are ErrBusy, that of the last call of the
// handler if it has not responded since, or that of the context.
func (l *Limiter) Begin(ctx context.Context, of Handler) (*Call, error) {
	for {
		call, wait, err := l.try(of)
		if call != nil || err != nil {
			return call, err
		}
		timer := l.clock.NewTimer(wait.most)
		select {
		case <-ctx.Done():
		case <-wait.ended:
		case <-timer.C():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// wait is how a call waits: until another one ends, or the time has passed.
type wait struct {
	ended <-chan struct{}
	most  time.Duration
}

func (l *Limiter) try(of Handler) (*Call, wait, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, now := l.server(of), l.clock.Now()
	last := s.failures[of.Name]
	if last != nil && (last.probed || now.Before(last.until)) {
		return nil, wait{}, last.err
	}
	if len(s.calls) >= l.parallel {
		left := s.calls[0].begun.Add(busyAfter).Sub(now)
		if left <= 0 {
			return nil, wait{}, ErrBusy
		}
		return nil, wait{ended: s.ended, most: left}, nil
	}
	call := &Call{limiter: l, server: s, handler: of.Name, begun: now}
	s.calls = append(s.calls, call)
	if last != nil {
		last.probed = true
	}
	return call, wait{}, nil
}

func (l *Limiter) server(of Handler) *server {
	s := l.servers[of.Server]
	if s == nil || s.version != of.Version {
		s = &server{version: of.Version, failures: map[string]*failure{}, ended: make(chan struct{})}
		l.servers[of.Server] = s
	}
	return s
}

// End ends a call. timeout is its error if the server has not responded in time, and nil otherwise.
func (c *Call) End(timeout error) {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	s := c.server
	s.calls = slices.DeleteFunc(s.calls, func(other *Call) bool { return other == c })
	delete(s.failures, c.handler)
	if timeout != nil {
		s.failures[c.handler] = &failure{err: timeout, until: c.limiter.clock.Now().Add(Pause)}
	}
	close(s.ended)
	s.ended = make(chan struct{})
}
