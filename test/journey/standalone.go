package journey

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/client-go/tools/clientcmd"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// startTime is the timeout for the standalone program to become ready.
const startTime = 2 * time.Minute

// standalones are the management clusters that run at the same time. Without a limit, each gets so little of the processors that a request
// takes a second, and the deletion of a namespace, which is two requests per kind, one after the other, takes minutes.
var standalones = semaphore.NewWeighted(3) // Tests cannot pass it to each other.

// Standalone is the management cluster of a single test, which may kill it.
type Standalone struct {
	tools     *Tools
	directory string
	env       []string
	t         testing.TB
	running   *exec.Cmd
	exited    chan struct{}
	closed    func() // stops the watches of the running process
}

// NewStandalone starts a management cluster, without providers. env is added to the environment. It waits while as many run as the machine
// is good for.
func NewStandalone(t testing.TB, tools *Tools, env ...string) *Standalone {
	t.Helper()
	s := &Standalone{tools: tools, directory: t.TempDir(), env: env, t: t}
	testenv.Must(t, standalones.Acquire(t.Context(), 1))
	t.Cleanup(func() {
		defer standalones.Release(1)
		if s.running != nil {
			s.Kill()
		}
	})
	s.launch()
	return s
}

func (s *Standalone) kubeconfig() string { return filepath.Join(s.directory, "kubeconfig") }

// launch starts the program and waits until it reports that it is ready.
func (s *Standalone) launch() {
	s.t.Helper()
	//nolint:noctx // It is killed, or exits with this process.
	s.running = exec.Command(s.tools.Capi, "serve", "--data-dir", filepath.Join(s.directory, "data"),
		"--secure-port", "0", "--kubeconfig", s.kubeconfig(), "--unsafe-no-fsync")
	s.running.SysProcAttr = dieWithParent()
	s.running.Env = append(os.Environ(), s.env...)
	out, err := s.running.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.exited = make(chan struct{})
	started, ready := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // The kernel ties the program's life to the thread that started it.
		defer runtime.UnlockOSThread()
		err := s.running.Start()
		started <- err
		if err != nil {
			return
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() {
			ready <- errors.New("it exited before it was ready")
		}
		ready <- nil
		for lines.Scan() {
		}
		_ = s.running.Wait() // The error is that it was killed.
		close(s.exited)
	}()
	if err := <-started; err != nil {
		s.running = nil
		s.t.Fatalf("starting %s: %v", s.tools.Capi, err)
	}
	select {
	case err = <-ready:
	case <-time.After(startTime):
		err = fmt.Errorf("it was not ready after %s", startTime)
	}
	if err != nil {
		s.t.Fatalf("starting %s: %v", s.tools.Capi, err)
	}
}

// Kill kills the program.
func (s *Standalone) Kill() {
	s.t.Helper()
	if s.closed != nil {
		s.closed()
		s.closed = nil
	}
	if err := s.running.Process.Signal(syscall.SIGKILL); err != nil {
		s.t.Errorf("killing the management cluster: %v", err)
	}
	<-s.exited
	s.running = nil
}

// Restart starts the program again, with the existing data.
func (s *Standalone) Restart() {
	s.t.Helper()
	s.launch()
}

// Management connects to the running program, until it is killed.
func (s *Standalone) Management() *Management {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig())
	if err != nil {
		s.t.Fatalf("connecting to the management cluster: %v", err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	s.closed = cancel
	m, err := connect(ctx, config, s.kubeconfig(), filepath.Join(s.directory, "data", "capi.log"), s.tools)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}
