package iostreams

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Board shows the state of several items, one line each: redrawn in place on a terminal, one line per change elsewhere. It is safe
// for concurrent use.
type Board struct {
	mu sync.Mutex
	w  io.Writer
	// columns is the terminal's width, 0 for anything else.
	columns int
	names   []string
	states  map[string]string
	width   int
}

// Board returns a Board of a command's progress, which is not shown if Quiet is set.
func (s *Streams) Board(names ...string) *Board {
	w, columns := s.Progress()
	return newBoard(w, columns, names...)
}

// Lines shows a Board, and returns the function that sets its states.
func (s *Streams) Lines(names ...string) (set func(name, state string)) { return s.Board(names...).Set }

// newBoard returns a Board that is written to w, a terminal with that many columns, or anything else if columns is 0.
func newBoard(w io.Writer, columns int, names ...string) *Board {
	b := &Board{w: w, columns: columns, names: slices.Clone(names), states: map[string]string{}}
	for _, name := range names {
		b.width = max(b.width, len(name))
	}
	if columns > 0 {
		for _, name := range names {
			fmt.Fprintln(w, truncate(b.line(name), columns-1))
		}
	}
	return b
}

// Set changes the state that is shown for a name. Setting the same state again has no effect.
func (b *Board) Set(name, state string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// A line that wraps or breaks could not be redrawn.
	state = strings.Join(strings.Fields(state), " ")
	if b.states[name] == state {
		return
	}
	b.states[name] = state
	if b.columns == 0 {
		fmt.Fprintln(b.w, b.line(name))
		return
	}
	up := len(b.names) - slices.Index(b.names, name)
	fmt.Fprintf(b.w, "\x1b[%dA\r\x1b[2K%s\x1b[%dB\r", up, truncate(b.line(name), b.columns-1), up)
}

func (b *Board) line(name string) string {
	return Clean(fmt.Sprintf("%-*s  %s", b.width, name, b.states[name]))
}

func truncate(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:max(n-1, 0)]) + "…"
	}
	return s
}
