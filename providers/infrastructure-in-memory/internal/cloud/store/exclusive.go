package store

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Exclusive is access to the objects while nothing else reads or writes them.
type Exclusive struct{ state *state }

// Exclusively calls a function with exclusive access.
func (s *Store) Exclusively(do func(Exclusive) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrDeleted
	}
	return do(Exclusive{&s.state})
}

// Get returns an object, or nil.
func (e Exclusive) Get(key Key) *Object { return e.state.lookup(key) }

// List returns the objects of a resource, sorted.
func (e Exclusive) List(r Resource) []*Object {
	var all []*Object
	for _, o := range e.state.objects[r] {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *Object) int { return compareKeys(a.Key, b.Key) })
	return all
}

// PodsOf returns the Pods bound to a Node, sorted.
func (e Exclusive) PodsOf(node string) []*Object { return e.state.podsOf(node) }

// Modify updates an object with change, if it is not nil and differs.
func (e Exclusive) Modify(o *Object, change func(*unstructured.Unstructured)) error {
	return e.state.modify(o, change)
}

// Remove removes an object immediately, with its dependents.
func (e Exclusive) Remove(o *Object) error { return e.state.remove(o) }

// Wake wakes all watchers.
func (e Exclusive) Wake() { e.state.wake() }
