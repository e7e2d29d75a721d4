package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sigs.k8s.io/cluster-api/sdk/testenv/process"
)

const (
	// BinaryVariable is the environment variable with the path of the standalone binary.
	// Its default is bin/capi in the repository's root.
	BinaryVariable = "CAPI_BIN"
	// RequireVariable is the environment variable that, if not empty, makes tests fail without the binary instead of
	// skipping them. So does the variable CI.
	RequireVariable = "CAPI_REQUIRE_ENV"

	// startTimeout is generous: a loaded CI machine needs many times the three seconds of an idle one.
	startTimeout = 2 * time.Minute
)

// Server is the API server of one test binary. The zero value is ready to use; keep it in a variable of the test
// package and call Main from TestMain.
type Server struct {
	once    sync.Once
	process *running
	env     *Env
	err     error
}

// Main runs the tests of a package, stops the server if any of them started it, and exits the process.
func (s *Server) Main(m *testing.M) { Main(m, s) }

// Main is Server.Main for tests that need several servers.
func Main(m *testing.M, servers ...*Server) {
	code := m.Run()
	for _, s := range servers {
		if s.process == nil {
			continue
		}
		if err := s.process.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Start returns the environment with all CustomResourceDefinitions of crds installed, and starts the server if it is
// not running. Each of crds is a file or a folder, relative to the repository's root or absolute, and may be a
// pattern of filepath.Glob. Without the standalone binary the test is skipped, or fails if RequireVariable or
// CI is set. With the flag -short it is skipped.
func (s *Server) Start(t testing.TB, crds ...string) *Env {
	t.Helper()
	if testing.Short() {
		t.Skip("tests with a real API server take long")
	}
	s.once.Do(func() { s.start(t) })
	if s.err != nil {
		t.Fatalf("the API server for tests did not start: %v", s.err)
	}
	if s.env == nil {
		t.Skip("there is no API server for tests; the first test of this package says why")
	}
	s.env.installCRDs(t, crds...)
	return s.env
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	dir, err := os.Getwd() // a test runs in the folder of its package
	if err != nil {
		s.err = err
		return
	}
	root, err := repositoryRoot(dir)
	if err != nil {
		s.err = err
		return
	}
	binary := os.Getenv(BinaryVariable)
	if binary == "" {
		binary = filepath.Join(root, "bin", "capi")
	}
	if _, err := os.Stat(binary); err != nil {
		message := fmt.Sprintf("this test needs a real API server and %s is missing: run `make bin/capi`, or set %s to where the binary is",
			binary, BinaryVariable)
		if os.Getenv("CI") != "" || os.Getenv(RequireVariable) != "" {
			s.err = fmt.Errorf("%s", message)
			return
		}
		t.Skip(message)
	}
	s.process, s.env, s.err = launch(binary, root)
}

// running is the server and its folder.
type running struct {
	*process.Process
	dir string
}

// stop ends the server and removes its data.
func (s *running) stop() error {
	return errors.Join(s.Stop(), os.RemoveAll(s.dir))
}

func launch(binary, root string) (*running, *Env, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	// Not t.TempDir: the directory is used longer than by the first test.
	dir, err := os.MkdirTemp("", "capi-test-")
	if err != nil {
		return nil, nil, fmt.Errorf("creating the server's data directory: %w", err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	p := &running{dir: dir}
	p.Process, err = process.Start(binary, filepath.Join(dir, "output"), nil, "serve",
		"--data-dir", filepath.Join(dir, "data"), "--secure-port", "0", "--kubeconfig", kubeconfig, "--unsafe-no-fsync")
	if err != nil {
		return nil, nil, err
	}
	config, err := waitReady(ctx, p, kubeconfig)
	if err != nil {
		err = fmt.Errorf("%w; its output ends with:\n%s", err, p.Tail())
		if stopErr := p.stop(); stopErr != nil {
			err = fmt.Errorf("%w; and then: %w", err, stopErr)
		}
		return nil, nil, err
	}
	env, err := newEnv(root, kubeconfig, config)
	return p, env, err
}

// waitReady returns the client configuration of p as soon as p is ready.
func waitReady(ctx context.Context, p *running, kubeconfig string) (*rest.Config, error) {
	var last error
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err == nil {
			err = ready(ctx, config)
		}
		if err == nil {
			return config, nil
		}
		last = err
		select {
		case <-p.Exited():
			return nil, errors.New("the server exited before it was ready")
		case <-ctx.Done():
			return nil, fmt.Errorf("the server was not ready after %s: %w", startTimeout, last)
		case <-tick.C:
		}
	}
}

func ready(ctx context.Context, config *rest.Config) error {
	client, err := rest.UnversionedRESTClientFor(withoutVersion(config))
	if err != nil {
		return err
	}
	return client.Get().AbsPath("/readyz").Do(ctx).Error()
}

// repositoryRoot returns the closest folder above dir with the root module, or otherwise with any module: that of a provider with its
// own repository.
func repositoryRoot(dir string) (string, error) {
	other := ""
	for start := dir; ; dir = filepath.Dir(dir) {
		switch name := moduleIn(dir); {
		case name == rootModule:
			return dir, nil
		case name != "" && other == "":
			other = dir
		}
		if dir != filepath.Dir(dir) {
			continue
		}
		if other == "" {
			return "", fmt.Errorf("no folder above %s contains a go.mod", start)
		}
		return other, nil
	}
}
