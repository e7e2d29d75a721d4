// Package process runs the programs of this repository for tests: it starts, suspends and kills them, and logs their output.
//
// What does not belong here: what a program needs before it starts, and when it is ready (package testenv,
// test/managers).
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// stopTimeout is the time between SIGTERM and SIGKILL: many times what a process needs on an idle machine.
const stopTimeout = time.Minute

// Process is a running program.
type Process struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
}

// Start runs a program, whose output is appended to a log file. It is killed when this process ends.
func Start(binary, log string, env []string, args ...string) (*Process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, args...) //nolint:noctx // It runs until Kill, or until this process ends.
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = dieWithParent()
	p := &Process{cmd: cmd, log: log, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel kills the child when the thread that started it ends, so that thread must not end.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = output.Close() }()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // The reason is in its log.
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w: build it with make bin/capi managers", filepath.Base(binary), err)
	}
	return p, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Kill kills the process and waits until it has ended.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// Suspend stops the process until Resume.
func (p *Process) Suspend() error { return p.signal(suspend) }

// Resume continues a suspended process.
func (p *Process) Resume() error { return p.signal(resume) }

// ErrKilled is the error for a process that did not end after SIGTERM.
var ErrKilled = errors.New("did not end after SIGTERM and was killed")

// Stop sends SIGTERM, and kills the process if it takes too long: then the error is ErrKilled.
func (p *Process) Stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("%s: %w after %s", filepath.Base(p.cmd.Path), ErrKilled, stopTimeout), p.Kill())
	}
}

// Tail returns the end of the output of the process.
func (p *Process) Tail() string {
	const enough = 4096
	output, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(output) > enough {
		output = output[len(output)-enough:]
	}
	return string(bytes.TrimSpace(output))
}

func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", s, filepath.Base(p.cmd.Path), err)
	}
	return nil
}
