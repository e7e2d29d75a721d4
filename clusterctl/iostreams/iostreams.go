// Package iostreams is how clusterctl prints: results to Out, everything else to Err. Both make control characters visible, because
// much of what is printed was written by others: see Clean.
//
// Output formats are defined by the commands.
package iostreams

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// defaultColumns is the assumed width of a terminal that does not report it.
const defaultColumns = 80

// Streams are the standard streams, or buffers in tests. Writes to Err may be made concurrently.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Verbosity is the level up to which Logf writes, set by -v.
	Verbosity int
	// Quiet suppresses everything but results, warnings and errors, set by --quiet.
	Quiet bool
	// FollowUp completes the commands that are proposed to users; nil leaves them as they are.
	FollowUp FollowUp

	outTerminal, errTerminal bool
	outColor, errColor       bool
	// rawOut and rawErr are what Out and Err write to.
	rawOut, rawErr io.Writer
}

// FollowUp completes commands, so that they are about the same cluster.
type FollowUp interface {
	// Line completes a command line.
	Line(line string) string
	// Text completes the commands in backquotes that a text tells users to run.
	Text(text string) string
}

// Command returns a command line to propose, completed.
func (s *Streams) Command(format string, args ...any) string {
	line := fmt.Sprintf(format, args...)
	if s.FollowUp == nil {
		return line
	}
	return s.FollowUp.Line(line)
}

// Commands returns a text whose proposed commands are completed.
func (s *Streams) Commands(text string) string {
	if s.FollowUp == nil {
		return text
	}
	return s.FollowUp.Text(text)
}

// New returns streams that write to out and err, which are no terminals.
func New(in io.Reader, out, err io.Writer) *Streams {
	locked := &lockedWriter{w: err}
	return &Streams{In: in, Out: &cleaner{out, Clean}, Err: &cleaner{locked, Clean}, rawOut: out, rawErr: locked}
}

// System returns the process's streams. Terminals get colors unless NO_COLOR is set.
func System(env func(string) (string, bool)) *Streams {
	outTerminal, errTerminal := term.IsTerminal(int(os.Stdout.Fd())), term.IsTerminal(int(os.Stderr.Fd()))
	noColor, set := env("NO_COLOR")
	dumb, _ := env("TERM")
	colors := !(set && noColor != "") && dumb != "dumb"
	s := New(os.Stdin, os.Stdout, os.Stderr)
	s.outTerminal, s.errTerminal = outTerminal, errTerminal && dumb != "dumb"
	s.outColor, s.errColor = outTerminal && colors, errTerminal && colors
	return s
}

// Buffers are the buffers behind Streams in tests.
type Buffers struct {
	In, Out, Err *bytes.Buffer
}

// Test returns streams that are not terminals, and the buffers behind them.
func Test() (*Streams, Buffers) {
	b := Buffers{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
	return New(b.In, b.Out, b.Err), b
}

// OutTerminal reports whether results go to a terminal.
func (s *Streams) OutTerminal() bool { return s.outTerminal }

// ErrTerminal reports whether lines written to Err can be redrawn.
func (s *Streams) ErrTerminal() bool { return s.errTerminal }

// ErrColumns returns the width of the terminal behind Err, 0 if there is none or its lines cannot be redrawn.
func (s *Streams) ErrColumns() int {
	if !s.errTerminal {
		return 0
	}
	if columns, _ := s.ErrSize(); columns > 0 {
		return columns
	}
	return defaultColumns
}

// Progress returns where progress is written, and the width of the terminal there, 0 if it is none: what is behind Err, or nothing
// with Quiet. Callers that redraw lines there have to clean what others have written.
func (s *Streams) Progress() (w io.Writer, columns int) {
	if s.Quiet {
		return io.Discard, 0
	}
	return s.rawErr, s.ErrColumns()
}

// Screen returns what is behind Out, for those that redraw lines: they have to clean what others have written.
func (s *Streams) Screen() io.Writer { return s.rawOut }

// ColoredOut is Out for results that may be colored. Callers that color them have to clean what others have written.
func (s *Streams) ColoredOut() io.Writer {
	if s.outColor {
		return &cleaner{s.rawOut, CleanColored}
	}
	return s.Out
}

// ErrSize returns the width and height of the terminal behind Err, 0 if they are unknown.
func (s *Streams) ErrSize() (width, height int) {
	if !s.errTerminal {
		return 0, 0
	}
	width, height, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}

// OutColor reports whether results may be colored.
func (s *Streams) OutColor() bool { return s.outColor }

// SetOutColor overrides terminal detection, for commands with a flag for it.
func (s *Streams) SetOutColor(on bool) { s.outColor = on }

// Infof prints a message about progress to Err, unless Quiet is set.
func (s *Streams) Infof(format string, args ...any) {
	if !s.Quiet {
		fmt.Fprintf(s.Err, format+"\n", args...)
	}
}

// Logf is Infof for details that are only printed at a verbosity and above.
func (s *Streams) Logf(verbosity int, format string, args ...any) {
	if s.Verbosity >= verbosity {
		s.Infof(format, args...)
	}
}

// Warnf prints a warning to Err.
func (s *Streams) Warnf(format string, args ...any) {
	fmt.Fprintf(s.rawErr, "%s %s\n", paint(s.errColor, Yellow, "Warning:"), Clean(s.Commands(fmt.Sprintf(format, args...))))
}

// Noticef is Infof in yellow.
func (s *Streams) Noticef(format string, args ...any) {
	if !s.Quiet {
		fmt.Fprintln(s.rawErr, paint(s.errColor, Yellow, Clean(fmt.Sprintf(format, args...))))
	}
}

// Deliver writes a document to a file with mode 0600, or to Out if path is empty or "-": byte by byte, unless that is a terminal.
func (s *Streams) Deliver(path string, result []byte) error {
	if path == "" || path == "-" {
		w := s.rawOut
		if s.outTerminal {
			w = s.Out
		}
		_, err := w.Write(result)
		return err
	}
	if err := os.WriteFile(path, result, 0o600); err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}

// Color is a text color on a terminal.
type Color string

// Colors.
const (
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
	Cyan   Color = "36"
	Gray   Color = "90"
)

func paint(on bool, c Color, text string) string {
	if !on {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes under the lock.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
