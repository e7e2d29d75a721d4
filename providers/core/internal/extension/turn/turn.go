// Package turn decides which calls of extensions are sent, so that a server that is slow or dead does not occupy all workers of a
// controller, and other Clusters are reconciled without delay.
//
//   - A server gets a limited number of calls at the same time. A further one waits for its turn only while the others are fast:
//     until the oldest one has taken a second. Then it is busy, and the caller comes back later.
//   - After a call of a handler has ended with its timeout, further calls of that handler fail at once, like that one. Ten
//     seconds later, one call is sent to find out whether it responds again; until it has ended, others fail at once.
//
// A new version of an ExtensionConfig begins without calls and failures.
//
// What does not belong here: the requests (package wire), and what a failed call means (package extension).
package turn

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// patience is how long calls take while others wait for their turn: five times as long as patches should take.
	patience = time.Second
	// Pause is the time after a timeout until the handler is called again. It is as long as the default timeout, so that a dead server
	// occupies one worker half of the time.
	Pause = 10 * time.Second
)

// ErrBusy means that a call was not sent, because the server has too many calls in progress.
var ErrBusy = errors.New("its server has too many calls in progress")

// Turns are the calls of all servers. It is safe for concurrent use.
type Turns struct {
	parallel int
	clock    clock.Clock

	mu      sync.Mutex
	servers map[string]*server
}

// New returns Turns for servers that get at most this many calls at the same time; at least one.
func New(parallel int, clock clock.Clock) *Turns {
	return &Turns{parallel: max(parallel, 1), clock: clock, servers: map[string]*server{}}
}

// Of identifies a handler.
type Of struct {
	// Server is the name of the ExtensionConfig, and Version changes with its spec.
	Server, Version string
	// Handler is the name of the handler.
	Handler string
}

// server is a version of an ExtensionConfig. It is guarded by Turns.mu.
type server struct {
	version  string
	calls    []*Turn // in progress, the oldest first
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

// Turn is a call in progress.
type Turn struct {
	turns   *Turns
	server  *server
	handler string
	begun   time.Time
}

// Take waits for the turn of a call. Without an error, the caller must call End. Errors are ErrBusy, that of the last call of the handler
// if it has not responded since, or that of the context.
func (t *Turns) Take(ctx context.Context, of Of) (*Turn, error) {
	for {
		turn, wait, err := t.try(of)
		if turn != nil || err != nil {
			return turn, err
		}
		timer := t.clock.NewTimer(wait.most)
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

// wait is how a call waits for its turn: until another one ends, or the time has passed.
type wait struct {
	ended <-chan struct{}
	most  time.Duration
}

func (t *Turns) try(of Of) (*Turn, wait, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, now := t.server(of), t.clock.Now()
	last := s.failures[of.Handler]
	if last != nil && (last.probed || now.Before(last.until)) {
		return nil, wait{}, last.err
	}
	if len(s.calls) >= t.parallel {
		left := s.calls[0].begun.Add(patience).Sub(now)
		if left <= 0 {
			return nil, wait{}, ErrBusy
		}
		return nil, wait{ended: s.ended, most: left}, nil
	}
	turn := &Turn{turns: t, server: s, handler: of.Handler, begun: now}
	s.calls = append(s.calls, turn)
	if last != nil {
		last.probed = true
	}
	return turn, wait{}, nil
}

func (t *Turns) server(of Of) *server {
	s := t.servers[of.Server]
	if s == nil || s.version != of.Version {
		s = &server{version: of.Version, failures: map[string]*failure{}, ended: make(chan struct{})}
		t.servers[of.Server] = s
	}
	return s
}

// End ends a call. timeout is its error if the server has not responded in time, and nil otherwise.
func (t *Turn) End(timeout error) {
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	s := t.server
	s.calls = slices.DeleteFunc(s.calls, func(other *Turn) bool { return other == t })
	delete(s.failures, t.handler)
	if timeout != nil {
		s.failures[t.handler] = &failure{err: timeout, until: t.turns.clock.Now().Add(Pause)}
	}
	close(s.ended)
	s.ended = make(chan struct{})
}
