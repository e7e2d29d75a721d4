package bootstrap

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// Container runs commands in containers.
type Container interface {
	Exec(ctx context.Context, name string, c engine.Command) error
}

// maxStep is the maximum length of the name of a step, with the mark of a truncated one.
const maxStep = 200 + len("...")

// interrupted is the exit code of an attempt that ended without one.
const interrupted = -1

// timeoutCodes are the exit codes of timeout.
const (
	timedOut = 124
	killed   = 137
)

// Result is the result of an attempt.
type Result struct {
	// Number is the number of the attempt, from 1.
	Number int
	// Code is the exit code: that of the failed step, or 0.
	Code int
	// Bootstrapped is whether the sentinel file exists, or the attempt succeeded before a restart of the container. Commands
	// that follow those of kubeadm may have failed nevertheless: see Code.
	Bootstrapped bool
	// Step is what failed. It does not quote commands.
	Step string
	// Log is the end of the output. It may contain secrets.
	Log string
	// Timeout is the time limit.
	Timeout time.Duration
}

// Why describes the failure in a few words.
func (r Result) Why() string {
	switch r.Code {
	case interrupted:
		return "the container was restarted, or its disk was full, in " + r.Step
	case timedOut, killed:
		return fmt.Sprintf("%s did not end within %s", r.Step, r.Timeout)
	}
	return fmt.Sprintf("%s failed with exit code %d", r.Step, r.Code)
}

// exitGrace is how much longer than its time limit an attempt may take until Run returns an error.
const exitGrace = time.Minute

// Run returns the result of an attempt. If there was no attempt of this number or a higher one, it runs the plan. If one is running, it
// waits for its end, at most for the time limit, which starts anew. An error means that the result is unknown, and says nothing
// about the attempt: call Run again with the same number.
func Run(ctx context.Context, in Container, container string, p *Plan, number int, timeout time.Duration) (Result, error) {
	return run(ctx, in, container, p, number, timeout, containerLayout())
}

func run(ctx context.Context, in Container, container string, p *Plan, number int, timeout time.Duration, at layout) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout+exitGrace,
		fmt.Errorf("no result of the bootstrap data in container %s after %s", container, timeout+exitGrace))
	defer cancel()
	script := p.script(at)
	sum := sha256.Sum256([]byte(script))
	seconds := max(1, int(timeout.Seconds()))
	out := &limited{limit: 16 << 10}
	err := in.Exec(ctx, container, engine.Command{
		Args: []string{
			"/bin/sh", "-c", runner, "bootstrap", strconv.Itoa(number), hex.EncodeToString(sum[:]), strconv.Itoa(seconds),
			at.state, at.scratch, at.log, at.sentinel,
		},
		Stdin: strings.NewReader(script), Stdout: out,
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return Result{}, cause
		}
		return Result{}, fmt.Errorf("running the bootstrap data: %w", explained(err))
	}
	r, err := parse(out.String())
	r.Timeout = timeout
	return r, err
}

// explained returns what an exit code of runner means, with the last line of its output: the bootstrap data did not run, so its output
// is that of the container's own programs.
func explained(err error) error {
	exit := (*engine.ExitError)(nil)
	if !errors.As(err, &exit) {
		return err
	}
	what, known := map[int]string{
		70: "cannot create folders",
		71: "cannot lock",
		72: "cannot write the script",
		73: "cannot verify the script",
		74: "cannot write the state of the attempt",
	}[exit.Code]
	if !known {
		return err
	}
	lines := strings.Split(strings.TrimSpace(exit.Output), "\n")
	return fmt.Errorf("%s in container %s: %s", what, exit.Container, oneLine(lines[len(lines)-1], maxStep))
}

// parse interprets the output of runner. The container may be hostile.
func parse(text string) (Result, error) {
	fields := strings.SplitN(text, "\n", 5)
	if len(fields) < 5 {
		return Result{}, errors.New("the container printed no result of the bootstrap data")
	}
	r := Result{Bootstrapped: fields[2] == "yes", Log: strings.ToValidUTF8(fields[4], "")}
	r.Step = oneLine(fields[3], maxStep)
	if r.Step == "" {
		r.Step = "the bootstrap data"
	}
	var err error
	if r.Number, err = strconv.Atoi(fields[0]); err != nil || r.Number < 1 {
		return Result{}, errors.New("the container printed no valid number of the attempt to bootstrap")
	}
	if fields[1] == "interrupted" {
		r.Code = interrupted
	} else if r.Code, err = strconv.Atoi(fields[1]); err != nil || r.Code < 0 {
		return Result{}, errors.New("the container printed no valid exit code of the bootstrap data")
	}
	r.Bootstrapped = r.Bootstrapped || r.Code == 0
	return r, nil
}

// oneLine returns text without control characters, truncated.
func oneLine(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.TrimSpace(condition.Truncate(text, limit))
}

// limited is a buffer that drops what exceeds its limit.
type limited struct {
	bytes.Buffer
	limit int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if left := l.limit - l.Len(); left > 0 {
		l.Buffer.Write(p[:min(left, len(p))])
	}
	return len(p), nil
}
