package enginetest

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
)

// Calls returns the calls so far, such as "Create c1", without those that Fail rejected.
func (f *Fake) Calls() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return slices.Clone(f.calls)
}

// Forget forgets the calls so far.
func (f *Fake) Forget() {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.calls = nil
}

// Containers returns the names of all containers, sorted.
func (f *Fake) Containers() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return slices.Sorted(maps.Keys(f.containers))
}

// Networks returns the names of all networks, sorted.
func (f *Fake) Networks() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return slices.Sorted(maps.Keys(f.networks))
}

// Created returns what a container was created with, and whether it exists.
func (f *Fake) Created(name string) (engine.Container, bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	c, ok := f.containers[name]
	if !ok {
		return engine.Container{}, false
	}
	return c.Container, true
}

// File returns the content of a file of a container, nil if it does not exist.
func (f *Fake) File(name, path string) []byte {
	f.lock.Lock()
	defer f.lock.Unlock()
	c, ok := f.containers[name]
	if !ok {
		return nil
	}
	return bytes.Clone(c.files[path])
}

// Kill makes the main process of a container exit with a code, as if it crashed.
func (f *Fake) Kill(name string, code int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if c, ok := f.containers[name]; ok && c.state.Running {
		f.stop(c, code)
	}
}

// Put adds a container that something else created, as it is.
func (f *Fake) Put(state engine.State) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.serial++
	f.containers[state.Name] = &container{
		Container: engine.Container{Name: state.Name, Image: state.Image, Labels: state.Labels}, state: state, files: map[string][]byte{},
	}
}

// Move gives a running container another address, as happens when the runtime restarts.
func (f *Fake) Move(name, address string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if c, ok := f.containers[name]; ok {
		c.state.IPv4 = address
	}
}

// Break breaks all streams of events.
func (f *Fake) Break() {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, s := range f.streams {
		s.broken <- errors.New("the stream broke")
	}
}

// Streams returns the number of open streams of events.
func (f *Fake) Streams() int {
	f.lock.Lock()
	defer f.lock.Unlock()
	return len(f.streams)
}
