package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/docker/dockertest"
)

func TestHosts(t *testing.T) {
	for host, want := range map[string]string{
		"ssh://me@host":          `cannot use container runtime "ssh://me@host": use a URL such as unix:///var/run/docker.sock or tcp://host:2376`,
		"/var/run/docker.sock":   `cannot use container runtime "/var/run/docker.sock": use a URL such as unix:///var/run/docker.sock or tcp://host:2376`,
		"unix:///x.sock":         "",
		"tcp://127.0.0.1:2376":   "",
		"unix://":                "cannot use container runtime \"unix://\": unable to parse docker host `unix://`",
		"http://127.0.0.1:2375/": "",
	} {
		got := ""
		if _, err := New(Options{Host: host}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}

// TestNamesOfContainers: users determine names through spec.providerID. They become part of the path of a request.
func TestNamesOfContainers(t *testing.T) {
	d, err := New(Options{Host: dockertest.Host(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../images/" + image, "a/../../images/x", "x?force=1", "", " ", "-a", "a b"} {
		_, inspecting := d.Inspect(t.Context(), name)
		_, reading := d.Read(t.Context(), name, "/etc/passwd")
		_, logs := d.Logs(t.Context(), name)
		for call, err := range map[string]error{
			"Inspect": inspecting, "Read": reading, "Logs": logs, "Remove": d.Remove(t.Context(), name), "Start": d.Start(t.Context(), name),
			"Signal": d.Signal(t.Context(), name, "SIGHUP"), "Copy": d.Copy(t.Context(), name, engine.File{Path: "/x"}),
			"Exec": d.Exec(t.Context(), name, engine.Command{Args: []string{"true"}}), "Create": d.Create(t.Context(), engine.Container{Name: name, Image: image}),
		} {
			if engine.ReasonFor(err) != engine.Invalid {
				t.Errorf("%s %q: error %v", call, name, err)
			}
		}
	}
	if _, err := d.api.ImageInspect(t.Context(), image); err != nil {
		t.Errorf("the image is gone: %v", err)
	}
}

func TestTextsOfErrors(t *testing.T) {
	d := &Docker{host: "unix:///x.sock"}
	for _, tt := range []struct{ reason, text, want string }{
		{
			"the port of the client in a lookup changes with every attempt",
			"Error response from daemon: Get \"https://a.example/v2/\": dial tcp: lookup a.example on 10.0.0.1:53: read udp 10.0.0.2:51234->10.0.0.1:53: i/o timeout",
			"cannot x: Get \"https://a.example/v2/\": dial tcp: lookup a.example on 10.0.0.1:53: read udp 10.0.0.1:53: i/o timeout",
		},
		{"IPv6", "read tcp [fd00::2]:51234->[fd00::1]:443: reset", "cannot x: read tcp [fd00::1]:443: reset"},
		{"lines", "a\n  b\x00\tc", "cannot x: a b\x00 c"},
		{"a registry that tells too much", strings.Repeat("x", 2000), "cannot x: " + strings.Repeat("x", maxText-3) + "..."},
	} {
		if diff := cmp.Diff(tt.want, d.classify("cannot x", errors.New(tt.text)).Error()); diff != "" {
			t.Errorf("%s, -want +got:\n%s", tt.reason, diff)
		}
	}
}

func TestMissingImage(t *testing.T) {
	d, _ := world(t)
	err := d.EnsureImage(t.Context(), "127.0.0.1:1/missing:v1")
	if err == nil || !strings.HasPrefix(err.Error(), `cannot pull image "127.0.0.1:1/missing:v1": `) || !strings.HasSuffix(err.Error(), ": "+registryAdvice) {
		t.Errorf("error %v", err)
	}
	t.Log(err)
}

func TestPaused(t *testing.T) {
	d, w := world(t)
	name := running(t, d, w, engine.Container{})
	if _, err := d.api.ContainerPause(t.Context(), name, client.ContainerPauseOptions{}); err != nil {
		t.Skipf("the runtime cannot pause containers here: %v", err)
	}
	if state, err := d.Inspect(t.Context(), name); err != nil || !state.Running || !state.Paused {
		t.Errorf("paused: %+v, error %v", state, err)
	}
	if err := d.Exec(t.Context(), name, engine.Command{Args: []string{"true"}}); !engine.IsConflict(err) {
		t.Errorf("a command in a paused container: %v", err)
	}
	if err := d.Remove(t.Context(), name); err != nil {
		t.Errorf("removing a paused container: %v", err)
	}
}

// TestNoSpace creates a container with a file in a volume that is too small.
func TestNoSpace(t *testing.T) {
	d, w := world(t)
	volume := w.Prefix + "small"
	_, err := d.api.VolumeCreate(t.Context(), client.VolumeCreateOptions{
		Name: volume, Driver: "local", DriverOpts: map[string]string{"type": "tmpfs", "device": "tmpfs", "o": "size=64k"},
	})
	if err != nil {
		t.Skipf("the runtime has no volumes of a limited size: %v", err)
	}
	t.Cleanup(func() {
		if _, err := d.api.VolumeRemove(context.WithoutCancel(t.Context()), volume, client.VolumeRemoveOptions{}); err != nil {
			t.Error(err)
		}
	})
	c := engine.Container{
		Name: w.Prefix + "full", Image: w.Image, Args: w.Run, Mounts: []engine.Mount{{HostPath: volume, ContainerPath: "/small"}},
		Files: []engine.File{{Path: "/small/file", Content: make([]byte, 1<<20)}},
	}
	err = d.Create(t.Context(), c)
	if engine.ReasonFor(err) != engine.NoSpace || !strings.Contains(err.Error(), "free space on the disk of the container runtime") {
		t.Errorf("error %v", err)
	}
	t.Log(err)
	if _, err := d.Inspect(t.Context(), c.Name); !engine.IsNotFound(err) {
		t.Errorf("the container is left: %v", err)
	}
}

// TestRestartPolicies checks what Docker is told. That it obeys is seen only when it is restarted.
func TestRestartPolicies(t *testing.T) {
	for restart, want := range map[engine.Restart]string{"": " 0", engine.Always: "unless-stopped 0", engine.Once: "on-failure 1"} {
		o, err := createOptions(engine.Container{Restart: restart})
		if got := fmt.Sprint(o.HostConfig.RestartPolicy.Name, " ", o.HostConfig.RestartPolicy.MaximumRetryCount); err != nil || got != want {
			t.Errorf("%q: %q, want %q, error %v", restart, got, want, err)
		}
	}
}

// TestRestartOnce: a node whose systemd crashes comes back, as it does when the runtime is restarted; one that users kill does not.
func TestRestartOnce(t *testing.T) {
	d, w := world(t)
	for _, tt := range []struct {
		reason string
		args   []string
		stop   func(name string) error
		starts bool
	}{
		{reason: "it fails", args: []string{"sh", "-c", "test -e /second && exec sleep 3600; touch /second; exit 3"}, starts: true},
		{reason: "a user kills it", args: w.Run, stop: func(name string) error { return d.Signal(t.Context(), name, "SIGKILL") }},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			open, got := make(chan struct{}), make(chan engine.Event, 10)
			go func() {
				_ = d.Events(ctx, map[string]string{w.Prefix: ""}, func() { close(open) }, func(e engine.Event) { got <- e })
			}()
			<-open
			name := w.Prefix + "once"
			t.Cleanup(func() {
				if err := d.Remove(context.WithoutCancel(t.Context()), name); err != nil {
					t.Error(err)
				}
			})
			c := engine.Container{Name: name, Image: w.Image, Args: tt.args, Restart: engine.Once, Labels: map[string]string{w.Prefix: ""}}
			if err := d.Create(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if tt.stop != nil {
				if err := tt.stop(name); err != nil {
					t.Fatal(err)
				}
			}
			want := []engine.Action{engine.Started, engine.Died}
			if tt.starts {
				want = append(want, engine.Started)
			}
			for _, action := range want {
				if e := <-got; e.Action != action {
					t.Errorf("%s, want %s", e.Action, action)
				}
			}
			if state, err := d.Inspect(t.Context(), name); err != nil || state.Running != tt.starts {
				t.Errorf("%+v, error %v", state, err)
			}
		})
	}
}

// unprivileged is the variable with which the test runs itself as a user without access to the socket.
const unprivileged = "CAPD_TEST_UNPRIVILEGED_SOCKET"

func TestSocketWithoutPermission(t *testing.T) {
	if host := os.Getenv(unprivileged); host != "" {
		d, err := New(Options{Host: host})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Inspect(t.Context(), "c")
		want := `cannot inspect container "c": cannot connect to the container runtime: permission denied: give this process access to the socket ` + host + ", for example through its group"
		if engine.ReasonFor(err) != engine.Forbidden || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	const nobody = 65534
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestSocketWithoutPermission$", "-test.v")
	again.Env = append(os.Environ(), unprivileged+"="+dockertest.Host(t))
	again.Dir = "/"
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := again.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestSocketWithoutPermission") {
		t.Errorf("error %v:\n%s", err, out)
	}
}
