package env

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

// process is the running server. Its output goes to a file: a test that fails at start shows the end of it.
type process struct {
	binary string
	dir    string
	cmd    *exec.Cmd
	// exited is closed when the process is gone.
	exited chan struct{}
}

func startProcess(dir, binary string, args ...string) (*process, error) {
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return nil, fmt.Errorf("making the server's log file: %w", err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = dieWithParent()
	p := &process{binary: binary, dir: dir, cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel ties the child's life to the thread that started it, so that thread has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer output.Close()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // How it ended is in its output; that it ended is all that matters here.
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	return p, nil
}

// stop ends the process, at first politely, and removes its data.
func (p *process) stop(patience time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.binary, err)
	}
	select {
	case <-p.exited:
		return os.RemoveAll(p.dir)
	case <-time.After(patience):
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.binary, err)
	}
	<-p.exited
	return errors.Join(fmt.Errorf("%s did not stop within %s and was killed", p.binary, patience), os.RemoveAll(p.dir))
}

// tail is the end of what the process wrote.
func (p *process) tail() string {
	const enough = 4096
	output, err := os.ReadFile(filepath.Join(p.dir, "output"))
	if err != nil {
		return err.Error()
	}
	if len(output) > enough {
		output = output[len(output)-enough:]
	}
	return string(bytes.TrimSpace(output))
}
