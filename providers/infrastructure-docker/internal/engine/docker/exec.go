package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
)

// Exec implements engine.Engine.
func (d *Docker) Exec(ctx context.Context, name string, c engine.Command) error {
	if len(c.Args) == 0 {
		return &engine.Error{Reason: engine.Invalid, Attempt: "cannot run a command", Err: errors.New("it is empty")}
	}
	attempt := fmt.Sprintf("cannot run %q in container %q", c.Args[0], name)
	if err := checkName(attempt, name); err != nil {
		return err
	}
	var id string
	err := d.within(ctx, shortTimeout, attempt, func(ctx context.Context) error {
		created, err := d.api.ExecCreate(ctx, name, client.ExecCreateOptions{
			Cmd: c.Args, Env: c.Env, AttachStdin: c.Stdin != nil, AttachStdout: true, AttachStderr: true,
		})
		id = created.ID
		return err
	})
	if err != nil {
		return err
	}
	var streams client.ExecAttachResult
	err = d.within(ctx, longTimeout, attempt, func(ctx context.Context) error {
		streams, err = d.api.ExecAttach(ctx, id, client.ExecAttachOptions{})
		return err
	})
	if err != nil {
		return err
	}
	end, err := converse(ctx, streams.HijackedResponse, c)
	if err != nil {
		return d.classify(attempt, fmt.Errorf("reading its output: %w", err))
	}
	code, err := d.exitCode(ctx, id, attempt)
	if err != nil || code == 0 {
		return err
	}
	return &engine.ExitError{Container: name, Program: c.Args[0], Code: code, Output: end}
}

// converse passes input and output between the command and the caller until the command closes its output. It returns the end
// of the output.
func converse(ctx context.Context, streams client.HijackedResponse, c engine.Command) (string, error) {
	defer streams.Close()
	stop := context.AfterFunc(ctx, streams.Close)
	defer stop()
	if c.Stdin != nil {
		// It ends at the latest when the connection is closed and Stdin returns. An error of the connection means that the
		// command does not want more input, which its exit code tells.
		go func() {
			_, _ = io.Copy(streams.Conn, c.Stdin)
			_ = streams.CloseWrite()
		}()
	}
	end := &tail{limit: engine.OutputLimit}
	var lock sync.Mutex // StdCopy writes one after another, but says so nowhere.
	_, err := stdcopy.StdCopy(both{&lock, end, c.Stdout}, both{&lock, end, c.Stderr}, streams.Reader)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return end.String(), err
}

// both writes to the tail and to the caller's writer, which may be nil.
type both struct {
	lock   *sync.Mutex
	tail   *tail
	caller io.Writer
}

// Write implements io.Writer.
func (b both) Write(p []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if _, err := b.tail.Write(p); err != nil {
		return 0, err
	}
	if b.caller == nil {
		return len(p), nil
	}
	return b.caller.Write(p)
}

// exitCode returns the exit code of a command whose output has ended. The process may exit a moment later.
func (d *Docker) exitCode(ctx context.Context, id, attempt string) (code int, err error) {
	const first, last = 5 * time.Millisecond, 500 * time.Millisecond
	err = d.within(ctx, longTimeout, attempt, func(ctx context.Context) error {
		for pause := first; ; pause = min(2*pause, last) {
			found, err := d.api.ExecInspect(ctx, id, client.ExecInspectOptions{})
			if err != nil {
				return err
			}
			if !found.Running {
				code = found.ExitCode
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pause):
			}
		}
	})
	return code, err
}
