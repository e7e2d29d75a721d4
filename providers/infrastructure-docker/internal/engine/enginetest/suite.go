package enginetest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
)

// patience limits waiting for things that must happen. It is long, because machines of tests are slow at times.
const patience = 2 * time.Minute

// World is an engine to test.
type World struct {
	Engine engine.Engine
	// Image is an image that is present, and Run a command in it that runs until it is killed.
	Image string
	Run   []string
	// Prefix is the prefix of the names that the test may use.
	Prefix string
}

// Suite tests that an engine does what the interface promises, as far as that does not depend on programs in containers.
func Suite(t *testing.T, w World) {
	t.Helper()
	t.Run("a container is created once, with its files, labels and network", w.creates)
	t.Run("what does not exist is NotFound, except where that is the goal", w.missing)
	t.Run("a container that exited can be started again, and keeps its files", w.restarts)
	t.Run("containers are listed by labels", w.lists)
	t.Run("changes of containers are events", w.reports)
	t.Run("a network is removed with its last container", w.networks)
}

// container returns a container of a test, and removes it afterwards.
func (w World) container(t *testing.T, name string, labels map[string]string) engine.Container {
	t.Helper()
	name = w.Prefix + name
	t.Cleanup(func() {
		if err := w.Engine.Remove(context.WithoutCancel(t.Context()), name); err != nil {
			t.Error(err)
		}
	})
	return engine.Container{Name: name, Image: w.Image, Args: w.Run, Labels: labels}
}

func (w World) create(t *testing.T, c engine.Container) {
	t.Helper()
	if err := w.Engine.EnsureImage(t.Context(), c.Image); err != nil {
		t.Fatal(err)
	}
	if err := w.Engine.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func (w World) inspect(t *testing.T, name string) *engine.State {
	t.Helper()
	state, err := w.Engine.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func (w World) creates(t *testing.T) {
	network := w.Prefix + "network"
	if err := w.Engine.EnsureNetwork(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	if err := w.Engine.EnsureNetwork(t.Context(), network); err != nil {
		t.Fatalf("the network exists already: %v", err)
	}
	t.Cleanup(func() {
		if err := w.Engine.RemoveNetwork(context.WithoutCancel(t.Context()), network); err != nil {
			t.Error(err)
		}
	})
	c := w.container(t, "creates", map[string]string{"a": "b"})
	c.Network = network
	c.Files = []engine.File{{Path: "/etc/test/file", Content: []byte("content"), Mode: fs.FileMode(0o600)}}
	c.Ports = []engine.Port{{HostIP: "127.0.0.1", ContainerPort: 6443}}
	w.create(t, c)
	state := w.inspect(t, c.Name)
	want := &engine.State{Name: c.Name, Image: c.Image, Labels: c.Labels, Running: true, Ports: c.Ports}
	ignored := []cmp.Option{cmpopts.IgnoreFields(engine.State{}, "ID", "Started", "IPv4"), cmpopts.IgnoreFields(engine.Port{}, "HostPort")}
	if diff := cmp.Diff(want, state, ignored...); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if state.ID == "" || state.Started.IsZero() || state.IPv4 == "" || state.Ports[0].HostPort == 0 {
		t.Errorf("want an ID, a start, an address and a port of the host: %+v", state)
	}
	if content, err := w.Engine.Read(t.Context(), c.Name, "/etc/test/file"); err != nil || string(content) != "content" {
		t.Errorf("its file has %q, error %v", content, err)
	}
	if err := w.Engine.Create(t.Context(), c); !engine.IsConflict(err) {
		t.Errorf("creating it again: error %v, want a conflict", err)
	}
	if diff := cmp.Diff(state, w.inspect(t, c.Name)); diff != "" {
		t.Errorf("creating it again changed it, -want +got:\n%s", diff)
	}
}

func (w World) missing(t *testing.T) {
	name := w.Prefix + "missing"
	c := w.container(t, "missing", nil)
	c.Image = "cluster-api.invalid/missing:v1"
	_, inspecting := w.Engine.Inspect(t.Context(), name)
	_, reading := w.Engine.Read(t.Context(), name, "/file")
	for call, err := range map[string]error{
		"Create from a missing image": w.Engine.Create(t.Context(), c), "Inspect": inspecting, "Read": reading,
		"Start": w.Engine.Start(t.Context(), name), "Signal": w.Engine.Signal(t.Context(), name, "SIGHUP"),
		"Copy": w.Engine.Copy(t.Context(), name, engine.File{Path: "/file"}),
		"Exec": w.Engine.Exec(t.Context(), name, engine.Command{Args: []string{"true"}}),
	} {
		if !engine.IsNotFound(err) {
			t.Errorf("%s: error %v, want NotFound", call, err)
		}
	}
	if err := w.Engine.Remove(t.Context(), name); err != nil {
		t.Errorf("removing it: %v", err)
	}
	if err := w.Engine.RemoveNetwork(t.Context(), name); err != nil {
		t.Errorf("removing a network: %v", err)
	}
	present := w.container(t, "present", nil)
	w.create(t, present)
	if _, err := w.Engine.Read(t.Context(), present.Name, "/nope"); !engine.IsNotFound(err) {
		t.Errorf("reading a missing file: error %v, want NotFound", err)
	}
}

func (w World) restarts(t *testing.T) {
	c := w.container(t, "restarts", nil)
	w.create(t, c)
	before := w.inspect(t, c.Name)
	if err := w.Engine.Copy(t.Context(), c.Name, engine.File{Path: "/etc/kept", Content: []byte("kept")}); err != nil {
		t.Fatal(err)
	}
	w.kill(t, c.Name)
	eventually(t, "the container exits", func() bool { return !w.inspect(t, c.Name).Running })
	if err := w.Engine.Exec(t.Context(), c.Name, engine.Command{Args: []string{"true"}}); !engine.IsConflict(err) {
		t.Errorf("running a command in a container that exited: error %v, want a conflict", err)
	}
	if err := w.Engine.Copy(t.Context(), c.Name, engine.File{Path: "/etc/added", Content: []byte("added")}); err != nil {
		t.Errorf("writing into a container that exited: %v", err)
	}
	for range 2 { // The second time it runs.
		if err := w.Engine.Start(t.Context(), c.Name); err != nil {
			t.Fatal(err)
		}
	}
	after := w.inspect(t, c.Name)
	if !after.Running || after.ID != before.ID || !after.Started.After(before.Started) {
		t.Errorf("want the same container, started later: %+v, before %+v", after, before)
	}
	for _, file := range []string{"kept", "added"} {
		if content, err := w.Engine.Read(t.Context(), c.Name, "/etc/"+file); err != nil || string(content) != file {
			t.Errorf("/etc/%s has %q, error %v", file, content, err)
		}
	}
}

// kill ends the main process of a container.
func (w World) kill(t *testing.T, name string) {
	t.Helper()
	if fake, ok := w.Engine.(*Fake); ok {
		fake.Kill(name, 137)
		return
	}
	if err := w.Engine.Signal(t.Context(), name, "SIGKILL"); err != nil {
		t.Fatal(err)
	}
}

func (w World) lists(t *testing.T) {
	mine := w.Prefix + "lists"
	w.create(t, w.container(t, "lists-1", map[string]string{mine: "1", "other": "x"}))
	w.create(t, w.container(t, "lists-2", map[string]string{mine: "2"}))
	tests := []struct {
		reason string
		labels map[string]string
		want   []string
	}{
		{reason: "an empty value is any value", labels: map[string]string{mine: ""}, want: []string{"lists-1", "lists-2"}},
		{reason: "a value", labels: map[string]string{mine: "2"}, want: []string{"lists-2"}},
		{reason: "all labels must match", labels: map[string]string{mine: "", "other": "x"}, want: []string{"lists-1"}},
		{reason: "nothing matches", labels: map[string]string{mine: "3"}},
	}
	for _, tc := range tests {
		var want, got []string
		for _, name := range tc.want {
			want = append(want, w.Prefix+name)
		}
		found, err := w.Engine.List(t.Context(), tc.labels)
		for _, state := range found {
			got = append(got, state.Name)
			if !state.Running || state.Labels[mine] == "" {
				t.Errorf("%s: %+v", tc.reason, state)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v, error %v", tc.reason, got, want, err)
		}
	}
}

func (w World) reports(t *testing.T) {
	label := w.Prefix + "reports"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open, ended, got := make(chan struct{}), make(chan error, 1), make(chan engine.Event, 100)
	go func() {
		ended <- w.Engine.Events(ctx, map[string]string{label: ""}, func() { close(open) }, func(e engine.Event) { got <- e })
	}()
	select {
	case <-open:
	case err := <-ended:
		t.Fatal(err)
	}
	w.create(t, w.container(t, "unrelated", nil))
	c := w.container(t, "reports", map[string]string{label: "x"})
	w.create(t, c)
	id := w.inspect(t, c.Name).ID
	if err := w.Engine.Remove(t.Context(), c.Name); err != nil {
		t.Fatal(err)
	}
	for _, want := range []engine.Action{engine.Started, engine.Died, engine.Destroyed} {
		select {
		case e := <-got:
			if e.Action != want || e.Name != c.Name || e.ID != id || e.Labels[label] != "x" {
				t.Errorf("got %+v, want %s of %s", e, want, c.Name)
			}
		case <-time.After(patience):
			t.Fatalf("no event %s", want)
		}
	}
	cancel()
	if err := <-ended; err == nil || !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("error %v after the context ended", err)
	}
}

func (w World) networks(t *testing.T) {
	network := w.Prefix + "networks"
	if err := w.Engine.EnsureNetwork(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	c := w.container(t, "networks", nil)
	c.Network = network
	w.create(t, c)
	if err := w.Engine.RemoveNetwork(t.Context(), network); err != nil {
		t.Fatalf("removing a network in use does nothing, but: %v", err)
	}
	if err := w.Engine.Remove(t.Context(), c.Name); err != nil {
		t.Fatal(err)
	}
	w.create(t, c) // The network still exists.
	if err := w.Engine.Remove(t.Context(), c.Name); err != nil {
		t.Fatal(err)
	}
	if err := w.Engine.RemoveNetwork(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	if err := w.Engine.Create(t.Context(), c); !engine.IsNotFound(err) {
		t.Errorf("the network was removed, but creating a container in it: error %v, want NotFound", err)
	}
	if _, err := w.Engine.Inspect(t.Context(), c.Name); !engine.IsNotFound(err) {
		t.Errorf("a container that could not be started is left: error %v", err)
	}
}

// eventually waits until holds returns true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
