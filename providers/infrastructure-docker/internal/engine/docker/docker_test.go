package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/docker/dockertest"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/enginetest"
)

// image is the image of tests.
const image = dockertest.Busybox

// world connects to the container runtime of this machine.
func world(t *testing.T) (*Docker, enginetest.World) {
	t.Helper()
	d, err := New(Options{Host: dockertest.Host(t), CertPath: os.Getenv("DOCKER_CERT_PATH")})
	if err != nil {
		t.Fatal(err)
	}
	prefix := fmt.Sprintf("capd-test-%d-", os.Getpid())
	return d, enginetest.World{Engine: d, Image: image, Run: []string{"sleep", "3600"}, Prefix: prefix}
}

func TestSuite(t *testing.T) {
	_, w := world(t)
	enginetest.Suite(t, w)
}

// running creates a container.
func running(t *testing.T, d *Docker, w enginetest.World, c engine.Container) string {
	t.Helper()
	c.Name, c.Image, c.Args = w.Prefix+"running", w.Image, w.Run
	t.Cleanup(func() {
		if err := d.Remove(context.WithoutCancel(t.Context()), c.Name); err != nil {
			t.Error(err)
		}
	})
	if err := d.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c.Name
}

func TestExec(t *testing.T) {
	d, w := world(t)
	name := running(t, d, w, engine.Container{})
	var out, errs bytes.Buffer
	err := d.Exec(t.Context(), name, engine.Command{
		Args: []string{"sh", "-c", `cat; printf %s "$A$1" >&2`, "sh", "$(x) 'y'"}, Env: []string{"A=a "},
		Stdin: strings.NewReader("input"), Stdout: &out, Stderr: &errs,
	})
	if err != nil || out.String() != "input" || errs.String() != "a $(x) 'y'" {
		t.Errorf("output %q and %q, error %v", out.String(), errs.String(), err)
	}
	err = d.Exec(t.Context(), name, engine.Command{Args: []string{"sh", "-c", "head -c 100000 /dev/zero; printf %s end; exit 3"}})
	var exit *engine.ExitError
	if !errors.As(err, &exit) || exit.Code != 3 || len(exit.Output) > engine.OutputLimit || !strings.HasSuffix(exit.Output, "end") {
		t.Errorf("error %#v, want exit code 3 and the end of the output", err)
	}
	// The command does not read its input, which does not end.
	input, _ := io.Pipe()
	if err := d.Exec(t.Context(), name, engine.Command{Args: []string{"true"}, Stdin: input}); err != nil {
		t.Errorf("a command that does not read its input: %v", err)
	}
	if err := d.Exec(t.Context(), name, engine.Command{Args: []string{"nope"}}); err == nil {
		t.Error("a command that does not exist succeeds")
	}
	ctx, cancel := context.WithCancel(t.Context())
	started := &signaled{begun: make(chan struct{})}
	go func() { <-started.begun; cancel() }()
	err = d.Exec(ctx, name, engine.Command{Args: []string{"sh", "-c", "echo x; exec sleep 3600"}, Stdout: started})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the context ended, error %v", err)
	}
}

// signaled is a writer that reports its first write.
type signaled struct {
	once  sync.Once
	begun chan struct{}
}

// Write implements io.Writer.
func (s *signaled) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	return len(p), nil
}

func TestWrite(t *testing.T) {
	d, w := world(t)
	name := running(t, d, w, engine.Container{Tmpfs: map[string]string{"/run": ""}})
	files := []engine.File{
		{Path: "/run/new/plain", Content: []byte("in a tmpfs")},
		{Path: "/etc/secret", Content: []byte("s"), Mode: 0o600, Owner: "7:7"},
		{Path: "/etc/named", Content: []byte("n"), Mode: 0o640 | os.ModeSetuid, Owner: "lp:lp"},
		{Path: "/etc/-odd name; $(x)", Content: []byte("1"), Append: true},
		{Path: "/etc/-odd name; $(x)", Content: []byte("2"), Append: true, Mode: 0o400},
		{Path: "/etc/passwd", Content: []byte("replaced")},
		{Path: "/etc/zero", Content: []byte("a\x00b\n")},
	}
	if err := d.Write(t.Context(), name, files...); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	err := d.Exec(t.Context(), name, engine.Command{Args: []string{"sh", "-c", `for f in /run/new/plain /etc/secret /etc/named "/etc/-odd name; \$(x)" /etc/passwd /etc/zero; do
stat -c "%a %u:%g" "$f"; cat "$f"; echo; done`}, Stdout: &got})
	want := "644 0:0\nin a tmpfs\n600 7:7\ns\n4640 7:7\nn\n400 0:0\n12\n644 0:0\nreplaced\n644 0:0\na\x00b\n\n"
	if diff := cmp.Diff(want, got.String()); err != nil || diff != "" {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
	var exit *engine.ExitError
	if err := d.Write(t.Context(), name, engine.File{Path: "/etc/x", Owner: "nobody:nope"}); !errors.As(err, &exit) {
		t.Errorf("an owner that does not exist: error %v", err)
	}
	for _, path := range []string{"", "relative", "/", "/a/../b", "/a/", "/a\x00"} {
		if err := d.Write(t.Context(), name, engine.File{Path: path, Append: true}); engine.ReasonFor(err) != engine.Invalid {
			t.Errorf("path %q: error %v", path, err)
		}
		if err := d.Copy(t.Context(), name, engine.File{Path: path}); engine.ReasonFor(err) != engine.Invalid {
			t.Errorf("copying to path %q: error %v", path, err)
		}
	}
}

func TestMounts(t *testing.T) {
	d, w := world(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("of the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := running(t, d, w, engine.Container{Mounts: []engine.Mount{
		{HostPath: dir, ContainerPath: "/host"}, {HostPath: dir, ContainerPath: "/readonly", ReadOnly: true},
		{HostPath: filepath.Join(dir, "missing"), ContainerPath: "/created"},
	}})
	var out bytes.Buffer
	err := d.Exec(t.Context(), name, engine.Command{Args: []string{"sh", "-c", "cat /host/file; echo x > /created/x; ! echo y > /readonly/y"}, Stdout: &out})
	if err != nil || out.String() != "of the host" {
		t.Errorf("%q, error %v", out.String(), err)
	}
	if _, err := os.Stat(filepath.Join(dir, "missing", "x")); err != nil {
		t.Error(err)
	}
	err = d.Create(t.Context(), engine.Container{Name: w.Prefix + "colon", Image: w.Image, Mounts: []engine.Mount{{HostPath: "/tmp", ContainerPath: "/x:rw", ReadOnly: true}}})
	if engine.ReasonFor(err) != engine.Invalid {
		t.Errorf("a path with a colon: error %v", err)
	}
}

func TestImages(t *testing.T) {
	d, _ := world(t)
	if err := d.EnsureImage(t.Context(), image); err != nil {
		t.Error(err)
	}
	var saved bytes.Buffer
	if err := d.SaveImage(t.Context(), image, &saved); err != nil || saved.Len() < 100_000 {
		t.Errorf("saved %d bytes, error %v", saved.Len(), err)
	}
	if err := d.SaveImage(t.Context(), "cluster-api.invalid/missing:v1", io.Discard); !engine.IsNotFound(err) {
		t.Errorf("saving a missing image: error %v", err)
	}
	if err := d.EnsureImage(t.Context(), "cluster-api.invalid/missing:v1"); err == nil {
		t.Error("an image that does not exist is pulled")
	}
	for _, bad := range []string{"", "UPPER", "../../containers/x", "a b", "x?force=1"} {
		if err := d.EnsureImage(t.Context(), bad); engine.ReasonFor(err) != engine.Invalid {
			t.Errorf("image %q: error %v", bad, err)
		}
	}
}

func TestPortInUse(t *testing.T) {
	d, w := world(t)
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := taken.Addr().(*net.TCPAddr).Port
	c := engine.Container{
		Name: w.Prefix + "port", Image: w.Image, Args: w.Run,
		Ports: []engine.Port{{HostIP: "127.0.0.1", HostPort: uint16(port), ContainerPort: 80}},
	}
	err = d.Create(t.Context(), c)
	if engine.ReasonFor(err) != engine.PortInUse || !strings.Contains(err.Error(), "stop the process") {
		t.Errorf("error %v", err)
	}
	if _, err := d.Inspect(t.Context(), c.Name); !engine.IsNotFound(err) {
		t.Errorf("the container is left: %v", err)
	}
}

func TestLogs(t *testing.T) {
	d, w := world(t)
	for _, tty := range []bool{false, true} {
		c := engine.Container{Name: w.Prefix + "logs", Image: w.Image, TTY: tty, Args: []string{"sh", "-c", "head -c 100000 /dev/zero; echo last; exit 4"}}
		if err := d.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(time.Minute)
		state, err := d.Inspect(t.Context(), c.Name)
		for err == nil && state.Running && time.Now().Before(deadline) {
			state, err = d.Inspect(t.Context(), c.Name)
		}
		if err != nil || state.Running || state.ExitCode != 4 {
			t.Errorf("state %+v, error %v", state, err)
		}
		logs, err := d.Logs(t.Context(), c.Name)
		if err != nil || len(logs) > engine.LogsLimit || !strings.HasSuffix(strings.TrimSpace(logs), "last") {
			t.Errorf("logs of %d bytes end with %q, error %v", len(logs), logs[max(0, len(logs)-20):], err)
		}
		if err := d.Remove(t.Context(), c.Name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnreachable checks the errors when there is no runtime.
func TestUnreachable(t *testing.T) {
	dir := t.TempDir()
	d, err := New(Options{Host: "unix://" + filepath.Join(dir, "docker.sock")})
	if err != nil {
		t.Fatal(err)
	}
	for call, err := range map[string]error{
		"EnsureImage": d.EnsureImage(t.Context(), "image"),
		"Create":      d.Create(t.Context(), engine.Container{Name: "c", Image: "image"}),
		"Events":      d.Events(t.Context(), nil, func() { t.Error("it started") }, nil),
		"Exec":        d.Exec(t.Context(), "c", engine.Command{Args: []string{"true"}}),
	} {
		if !engine.IsUnavailable(err) || !strings.Contains(err.Error(), "DOCKER_HOST") {
			t.Errorf("%s: error %v", call, err)
		}
	}
}

func TestClassify(t *testing.T) {
	d := &Docker{host: "unix:///x.sock"}
	tests := []struct {
		reason string
		err    error
		want   engine.Reason
	}{
		{reason: "a socket that this user may not use", err: fmt.Errorf("x: %w", newDialError(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)})), want: engine.Forbidden},
		{reason: "no socket", err: newDialError(syscall.ENOENT), want: engine.Unavailable},
		{reason: "a full disk, in whatever words", err: errors.New("write /var/lib/docker/x: no space left on device"), want: engine.NoSpace},
		{reason: "an unknown error", err: errors.New("x"), want: engine.Unknown},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			err := d.classify("cannot x", tc.err)
			if got := engine.ReasonFor(err); got != tc.want {
				t.Errorf("%q for %v, want %q", got, err, tc.want)
			}
			if again := d.classify("cannot y", err); again != err { //nolint:errorlint // It is returned as it is.
				t.Errorf("classified again: %v", again)
			}
		})
	}
	if err := d.classify("cannot x", nil); err != nil {
		t.Error(err)
	}
}

// TestHangs checks that a runtime that accepts connections and never responds does not hold a caller.
func TestHangs(t *testing.T) {
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(released)
	d, err := New(Options{Host: "tcp://" + server.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	err = d.within(t.Context(), 50*time.Millisecond, "cannot inspect", func(ctx context.Context) error {
		_, err := d.api.ContainerInspect(ctx, "c", client.ContainerInspectOptions{})
		return err
	})
	if !engine.IsUnavailable(err) || !strings.Contains(err.Error(), "did not respond within 50ms") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Inspect(ctx, "c"); !errors.Is(err, context.Canceled) || engine.IsUnavailable(err) {
		t.Errorf("the caller gave up, error %v", err)
	}
}

// TestAmbiguousNetworkPasses: a container starts although another process has just created a network of the same name.
func TestAmbiguousNetworkPasses(t *testing.T) {
	starts := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/start") {
			return
		}
		if starts++; starts == 1 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"message": "network kind is ambiguous (2 matches found on name)"}`))
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	d, err := New(Options{Host: "tcp://" + server.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context(), "c"); err != nil || starts != 2 {
		t.Errorf("%d starts, error %v", starts, err)
	}
}
