package casts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

const (
	columns = 104
	// quiet is how long nothing is written before a frame is taken.
	quiet = 80 * time.Millisecond
	// Seconds that frames are shown: while a command is typed, before it runs, of its output, and at the end.
	typing, typed, output, last = 0.1, 0.8, 0.4, 8
	// steps is in how many frames a command is typed.
	steps = 8
)

// frame is what the terminal shows, and for how long.
type frame struct {
	rows    []row
	seconds float64
}

// recorder is a terminal whose frames are kept.
type recorder struct {
	terminal *vt.Emulator
	names    *names
	frames   []frame
}

// record runs the commands of a cast.
func record(ctx context.Context, l *lab, c cast, n *names) ([]frame, error) {
	r := &recorder{terminal: vt.NewEmulator(columns, c.rows), names: n}
	defer func() { _ = r.terminal.Close() }()
	for _, command := range c.commands {
		if err := r.typeIn(command); err != nil {
			return nil, err
		}
		if err := r.follow(ctx, l, c.rows, command); err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
	}
	if err := r.write("\x1b[32m$\x1b[0m "); err != nil {
		return nil, err
	}
	r.take(last)
	return r.frames, nil
}

// typeIn shows how a command is typed.
func (r *recorder) typeIn(command string) error {
	if err := r.write("\x1b[32m$\x1b[0m "); err != nil {
		return err
	}
	r.take(typed)
	letters := []rune(command)
	for i := range steps {
		part := string(letters[len(letters)*i/steps : len(letters)*(i+1)/steps])
		if err := r.write("\x1b[1m" + strings.ReplaceAll(part, "\n", "\r\n\x1b[32m>\x1b[0;1m ") + "\x1b[0m"); err != nil {
			return err
		}
		r.take(typing)
	}
	r.frames[len(r.frames)-1].seconds = typed
	return r.write("\r\n")
}

// follow runs a command in the terminal, and takes a frame whenever it has stopped writing for a moment.
func (r *recorder) follow(ctx context.Context, l *lab, rows int, command string) error {
	cmd := l.command(ctx, command)
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(rows), Cols: columns})
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	written := make(chan []byte)
	read := make(chan error, 1)
	go func() {
		defer close(written)
		for {
			buffer := make([]byte, 4096)
			n, err := file.Read(buffer)
			if n > 0 {
				written <- buffer[:n]
			}
			if err != nil {
				read <- err
				return
			}
		}
	}()
	for open := true; open; {
		var chunk []byte
		select {
		case chunk, open = <-written:
			if _, err := r.terminal.Write(chunk); err != nil {
				return err
			}
		case <-time.After(quiet):
			r.take(output)
		}
	}
	r.take(output)
	// Linux reports the end of a terminal as an error of input or output.
	if err := <-read; !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EIO) {
		return err
	}
	return cmd.Wait()
}

func (r *recorder) write(text string) error {
	_, err := r.terminal.WriteString(text)
	return err
}

// take adds a frame, unless the terminal shows what it showed before.
func (r *recorder) take(seconds float64) {
	rows := r.names.stable(screen(r.terminal))
	if at := len(r.frames) - 1; at >= 0 && same(rows, r.frames[at].rows) {
		r.frames[at].seconds = max(r.frames[at].seconds, seconds)
		return
	}
	r.frames = append(r.frames, frame{rows, seconds})
}
