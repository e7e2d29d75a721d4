package move

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
)

// Intervals of updates: a terminal is redrawn, a log gets a line each.
const (
	terminalInterval = 200 * time.Millisecond
	logInterval      = 5 * time.Second
	// retryInterval is the time between lines about requests that are repeated: many fail together.
	retryInterval = 10 * time.Second
)

// show shows the progress of a move. It is safe for concurrent use.
type show struct {
	io    *iostreams.Streams
	clock clock.PassiveClock
	begin time.Time

	mu          sync.Mutex
	board       *iostreams.Board
	what        string
	done, total int
	start, last time.Time
	retried     time.Time // when the last line about a repeated request was printed
}

func newShow(streams *iostreams.Streams, c clock.PassiveClock) *show {
	return &show{io: streams, clock: c, begin: c.Now()}
}

// Start begins a part with a number of objects.
func (s *show) Start(what string, objects int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.what, s.done, s.total, s.start = what, 0, objects, s.clock.Now()
	s.board = s.io.Board(what)
	s.set()
}

// Done counts an object.
func (s *show) Done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = min(s.done+1, s.total)
	interval := logInterval
	if s.io.ErrColumns() > 0 {
		interval = terminalInterval
	}
	if s.done == s.total || s.clock.Since(s.last) >= interval {
		s.set()
	}
}

// Say prints a line.
func (s *show) Say(format string, args ...any) { s.io.Infof(format, args...) }

// Warn prints a warning.
func (s *show) Warn(format string, args ...any) { s.io.Warnf(format, args...) }

// Log prints a line if details are wanted.
func (s *show) Log(format string, args ...any) { s.io.Logf(1, format, args...) }

// Retrying prints a line about a request that failed and is repeated, unless there was one a moment ago.
func (s *show) Retrying(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.retried.IsZero() && s.clock.Since(s.retried) < retryInterval {
		return
	}
	s.retried = s.clock.Now()
	s.io.Infof("Trying again: %s", management.Text(err))
}

func (s *show) set() {
	s.last = s.clock.Now()
	state := fmt.Sprintf("%d of %d objects", s.done, s.total)
	if rest := s.remaining(); rest >= time.Second {
		state += fmt.Sprintf(", about %s left", rest.Round(time.Second))
	}
	s.board.Set(s.what, state)
}

// remaining estimates how long the part takes from now, at the pace so far; 0 if that is unknown.
func (s *show) remaining() time.Duration {
	if s.done == 0 || s.done == s.total {
		return 0
	}
	return s.clock.Since(s.start) * time.Duration(s.total-s.done) / time.Duration(s.done)
}

func (s *show) elapsed() time.Duration { return s.clock.Since(s.begin).Round(time.Second / 10) }
