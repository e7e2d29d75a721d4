// Package enginetest has a container runtime in memory, for tests: Fake implements engine.Engine with the same contract, and
// fails where tests want it to.
//
// Containers run as long as nothing stops them. What their processes do is up to the test: see Fake.OnExec and Fake.OnSignal.
package enginetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
)

// ErrKilled is the error of a call after which the process of a test counts as killed. See Fake.KillAfter.
var ErrKilled = errors.New("killed")

// Fake is a container runtime in memory. It is safe for concurrent use; its fields must be set before it is used.
type Fake struct {
	// Fail returns the error of a call before it has any effect, or nil. The call is the name of the method; name is that of
	// the container, image or network.
	Fail func(call, name string) error
	// KillAfter reports whether the process is killed after the call had its effect: the caller gets ErrKilled.
	KillAfter func(call, name string) bool
	// OnExec runs the commands in containers. Nil: all of them succeed without output.
	OnExec func(container string, c engine.Command) error
	// OnSignal is called for signals to containers. It may be nil.
	OnSignal func(container, signal string)
	// OnStart is called when a container starts; an error makes the start fail. It may be nil.
	OnStart func(c engine.Container) error
	// Absent are the images that no registry has. All others can be pulled.
	Absent map[string]bool

	lock       sync.Mutex
	containers map[string]*container
	networks   map[string]bool
	images     map[string]bool
	calls      []string
	streams    map[int]stream
	serial     int
}

type container struct {
	engine.Container
	state engine.State
	files map[string][]byte
}

type stream struct {
	labels map[string]string
	f      func(engine.Event)
	broken chan error
}

var _ engine.Engine = (*Fake)(nil)

// New returns a runtime without containers, images and networks.
func New() *Fake {
	return &Fake{containers: map[string]*container{}, networks: map[string]bool{}, images: map[string]bool{}, streams: map[int]stream{}}
}

// NotFound returns the error for a missing container, image or network.
func NotFound(name string) error {
	return &engine.Error{Reason: engine.NotFound, Attempt: fmt.Sprintf("cannot find %q", name), Err: errors.New("not found")}
}

// Failure returns an error with a reason.
func Failure(reason engine.Reason, text string) error {
	return &engine.Error{Reason: reason, Attempt: "cannot call the runtime", Err: errors.New(text)}
}

func conflict(name, text string) error {
	return &engine.Error{Reason: engine.Conflict, Attempt: fmt.Sprintf("cannot use container %q", name), Err: errors.New(text)}
}

// call runs a call: it records it, and injects faults before and after it. do runs with the lock held.
func (f *Fake) call(ctx context.Context, call, name string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return &engine.Error{Reason: engine.Unavailable, Attempt: "cannot call " + call, Err: err}
	}
	if f.Fail != nil {
		if err := f.Fail(call, name); err != nil {
			return err
		}
	}
	f.lock.Lock()
	f.calls = append(f.calls, call+" "+name)
	err := do()
	f.lock.Unlock()
	if f.KillAfter != nil && f.KillAfter(call, name) {
		return ErrKilled
	}
	return err
}

// find returns a container. The lock must be held.
func (f *Fake) find(name string) (*container, error) {
	if c, ok := f.containers[name]; ok {
		return c, nil
	}
	return nil, NotFound(name)
}

// running is find for a container that must be running.
func (f *Fake) running(name string) (*container, error) {
	c, err := f.find(name)
	if err == nil && !c.state.Running {
		return nil, conflict(name, "the container is not running")
	}
	return c, err
}

// EnsureImage implements engine.Engine.
func (f *Fake) EnsureImage(ctx context.Context, image string) error {
	return f.call(ctx, "EnsureImage", image, func() error {
		if f.Absent[image] {
			return NotFound(image)
		}
		f.images[image] = true
		return nil
	})
}

// Create implements engine.Engine.
func (f *Fake) Create(ctx context.Context, c engine.Container) error {
	return f.call(ctx, "Create", c.Name, func() error {
		switch {
		case f.containers[c.Name] != nil:
			return conflict(c.Name, "the name is in use")
		case !f.images[c.Image] || f.Absent[c.Image]:
			return NotFound(c.Image)
		case c.Network != "" && !f.networks[c.Network]:
			return NotFound(c.Network)
		}
		made := &container{
			Container: c, files: map[string][]byte{}, state: engine.State{Name: c.Name, Image: c.Image, Labels: maps.Clone(c.Labels)},
		}
		for _, file := range c.Files {
			made.files[file.Path] = bytes.Clone(file.Content)
		}
		f.serial++
		made.state.ID = fmt.Sprintf("id-%d", f.serial)
		for _, p := range c.Ports {
			p.HostPort = cmp.Or(p.HostPort, uint16(30000+f.serial))
			made.state.Ports = append(made.state.Ports, p)
		}
		f.containers[c.Name] = made
		if err := f.start(made); err != nil {
			delete(f.containers, c.Name)
			return err
		}
		return nil
	})
}

// start starts a container. Its address depends on its serial number, so it never changes.
func (f *Fake) start(c *container) error {
	if f.OnStart != nil {
		if err := f.OnStart(c.Container); err != nil {
			return err
		}
	}
	var serial int
	if _, err := fmt.Sscanf(c.state.ID, "id-%d", &serial); err != nil {
		return err
	}
	c.state.Running, c.state.ExitCode = true, 0
	c.state.Started = time.Unix(int64(1000+len(f.calls)), 0).UTC()
	c.state.IPv4 = fmt.Sprintf("172.18.%d.%d", serial/250, serial%250+2)
	f.emit(engine.Started, c)
	return nil
}

// Start implements engine.Engine.
func (f *Fake) Start(ctx context.Context, name string) error {
	return f.call(ctx, "Start", name, func() error {
		c, err := f.find(name)
		if err != nil || c.state.Running {
			return err
		}
		return f.start(c)
	})
}

// Inspect implements engine.Engine.
func (f *Fake) Inspect(ctx context.Context, name string) (*engine.State, error) {
	var state engine.State
	err := f.call(ctx, "Inspect", name, func() error {
		c, err := f.find(name)
		if err == nil {
			state = c.state
			state.Labels, state.Ports = maps.Clone(c.state.Labels), slices.Clone(c.state.Ports)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &state, nil
}

// List implements engine.Engine.
func (f *Fake) List(ctx context.Context, labels map[string]string) ([]engine.State, error) {
	var all []engine.State
	err := f.call(ctx, "List", "", func() error {
		for _, name := range slices.Sorted(maps.Keys(f.containers)) {
			if state := f.containers[name].state; matches(labels, state.Labels) {
				state.Started, state.ExitCode = time.Time{}, 0
				all = append(all, state)
			}
		}
		return nil
	})
	return all, err
}

func matches(wanted, labels map[string]string) bool {
	for key, value := range wanted {
		if got, found := labels[key]; !found || value != "" && got != value {
			return false
		}
	}
	return true
}

// Remove implements engine.Engine.
func (f *Fake) Remove(ctx context.Context, name string) error {
	return f.call(ctx, "Remove", name, func() error {
		if c, ok := f.containers[name]; ok {
			if c.state.Running {
				f.stop(c, 137)
			}
			delete(f.containers, name)
			f.emit(engine.Destroyed, c)
		}
		return nil
	})
}

func (f *Fake) stop(c *container, code int) {
	c.state.Running, c.state.ExitCode, c.state.IPv4 = false, code, ""
	f.emit(engine.Died, c)
}

// Signal implements engine.Engine.
func (f *Fake) Signal(ctx context.Context, name, signal string) error {
	err := f.call(ctx, "Signal", name, func() error {
		_, err := f.running(name)
		return err
	})
	if err == nil && f.OnSignal != nil {
		f.OnSignal(name, signal)
	}
	return err
}

// Exec implements engine.Engine.
func (f *Fake) Exec(ctx context.Context, name string, c engine.Command) error {
	var failed error
	err := f.call(ctx, "Exec", name, func() error {
		_, err := f.running(name)
		return err
	})
	if errors.Is(err, ErrKilled) || err == nil {
		switch {
		case f.OnExec != nil:
			failed = f.OnExec(name, c)
		case c.Stdin != nil:
			_, failed = io.Copy(io.Discard, c.Stdin)
		}
	}
	return cmp.Or(err, failed)
}

// Write implements engine.Engine.
func (f *Fake) Write(ctx context.Context, name string, files ...engine.File) error {
	return f.call(ctx, "Write", name, func() error {
		c, err := f.running(name)
		if err == nil {
			c.write(files)
		}
		return err
	})
}

// Copy implements engine.Engine.
func (f *Fake) Copy(ctx context.Context, name string, files ...engine.File) error {
	return f.call(ctx, "Copy", name, func() error {
		c, err := f.find(name)
		if err == nil {
			c.write(files)
		}
		return err
	})
}

func (c *container) write(files []engine.File) {
	for _, file := range files {
		if file.Append {
			c.files[file.Path] = append(c.files[file.Path], file.Content...)
			continue
		}
		c.files[file.Path] = bytes.Clone(file.Content)
	}
}

// Read implements engine.Engine.
func (f *Fake) Read(ctx context.Context, name, file string) ([]byte, error) {
	var content []byte
	err := f.call(ctx, "Read", name, func() error {
		c, err := f.find(name)
		if err != nil {
			return err
		}
		found, ok := c.files[path.Clean(file)]
		if !ok {
			return NotFound(file)
		}
		content = bytes.Clone(found)
		return nil
	})
	return content, err
}

// Logs implements engine.Engine.
func (f *Fake) Logs(ctx context.Context, name string) (string, error) {
	err := f.call(ctx, "Logs", name, func() error {
		_, err := f.find(name)
		return err
	})
	return "", err
}

// SaveImage implements engine.Engine.
func (f *Fake) SaveImage(ctx context.Context, image string, to io.Writer) error {
	err := f.call(ctx, "SaveImage", image, func() error {
		if !f.images[image] {
			return NotFound(image)
		}
		return nil
	})
	if err == nil {
		_, err = io.WriteString(to, "image "+image)
	}
	return err
}

// EnsureNetwork implements engine.Engine.
func (f *Fake) EnsureNetwork(ctx context.Context, name string) error {
	return f.call(ctx, "EnsureNetwork", name, func() error {
		f.networks[name] = true
		return nil
	})
}

// RemoveNetwork implements engine.Engine.
func (f *Fake) RemoveNetwork(ctx context.Context, name string) error {
	return f.call(ctx, "RemoveNetwork", name, func() error {
		for _, c := range f.containers {
			if c.Network == name {
				return nil
			}
		}
		delete(f.networks, name)
		return nil
	})
}

// Events implements engine.Engine.
func (f *Fake) Events(ctx context.Context, labels map[string]string, started func(), do func(engine.Event)) error {
	broken := make(chan error, 1)
	var id int
	err := f.call(ctx, "Events", "", func() error {
		f.serial++
		id = f.serial
		f.streams[id] = stream{labels: maps.Clone(labels), f: do, broken: broken}
		return nil
	})
	if err != nil {
		return err
	}
	defer func() {
		f.lock.Lock()
		defer f.lock.Unlock()
		delete(f.streams, id)
	}()
	started()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-broken:
		return err
	}
}

// emit sends an event to all streams. The lock must be held.
func (f *Fake) emit(action engine.Action, c *container) {
	for _, s := range f.streams {
		if matches(s.labels, c.state.Labels) {
			s.f(engine.Event{Action: action, Name: c.Name, ID: c.state.ID, Labels: maps.Clone(c.state.Labels)})
		}
	}
}
