package world

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
)

// Crash is an exit of a manager that no fault caused.
type Crash struct {
	// Manager is the name of the replica.
	Manager string
	// Reason is the panic or the end of the log.
	Reason string
}

// String returns a line for the report.
func (c Crash) String() string { return c.Manager + " exited: " + c.Reason }

const (
	// lastLines is how many lines of a log explain an exit: the last one usually has the error.
	lastLines = 3
	// panicLines is how many lines of a panic explain an exit: the message, the signal, the goroutine and its first frames.
	panicLines = 8
	// lineLength is how much of each line is reported.
	lineLength = 300
)

// exit is why a process has exited.
type exit struct {
	reason   string
	panicked bool
	// lostLease is set if the process exited because it is no longer the leader.
	lostLease bool
}

// readExit reads what a process has written to its log, which begins at an offset.
func readExit(log string, offset int64) (exit, error) {
	file, err := os.Open(log)
	if err != nil {
		return exit{}, err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return exit{}, err
	}
	return explain(file)
}

// explain returns the first panic or fatal error with the beginning of its stack, or otherwise the last lines.
func explain(output io.Reader) (exit, error) {
	e := exit{}
	var last, stack []string
	for lines := bufio.NewReader(output); ; {
		line, err := lines.ReadString('\n')
		// The second: it stopped itself before it noticed that another one leads.
		e.lostLease = e.lostLease || strings.Contains(line, "leader election lost") ||
			strings.HasSuffix(strings.TrimSpace(line),
				": not sent: this process was the leader and has not renewed its lease in time, so another may lead")
		line = strings.TrimSpace(line)
		line = line[:min(len(line), lineLength)]
		switch {
		case line == "":
		case len(stack) > 0 || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: "):
			if len(stack) < panicLines {
				stack = append(stack, line)
			}
		default:
			last = append(last, line)
			last = last[max(0, len(last)-lastLines):]
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return e, err
		}
	}
	if len(stack) > 0 {
		e.panicked, last = true, stack
	}
	e.reason = strings.Join(last, " | ")
	if e.reason == "" {
		e.reason = "it has logged nothing"
	}
	return e, nil
}

// size returns the size of a file, 0 if it does not exist.
func size(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}
