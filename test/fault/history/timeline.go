package history

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// Key names an object within a namespace.
type Key struct {
	// Kind is the kind, without its group: kinds are unambiguous here.
	Kind string
	Name string
}

// Event is a change of one object.
type Event struct {
	// Revision is the resource version of the change.
	Revision uint64
	// Type is Added, Modified or Deleted.
	Type watch.EventType
	// Object is the object after the change, or before it was deleted. It must not be modified.
	Object *unstructured.Unstructured
	// At is when the event was received.
	At time.Time
}

// Key returns the object's key.
func (e Event) Key() Key { return Key{Kind: e.Object.GetKind(), Name: e.Object.GetName()} }

// State is the state of a namespace at a revision. Its objects must not be modified.
type State map[Key]*unstructured.Unstructured

// Of returns the objects of a kind, sorted by name.
func (s State) Of(kind string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for key, o := range s {
		if key.Kind == kind {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return found
}

// Timeline has the events of a namespace in the order in which they happened.
type Timeline []Event

// Sort sorts events by revision.
func (t Timeline) Sort() {
	slices.SortStableFunc(t, func(a, b Event) int { return cmp.Compare(a.Revision, b.Revision) })
}

// Play calls see for each event, with the previous object or nil, and the state after the event. The state is one map that
// is updated for each call. Play stops when see returns false.
func (t Timeline) Play(see func(e Event, before *unstructured.Unstructured, now State) bool) {
	now := State{}
	for _, e := range t {
		before := now[e.Key()]
		if e.Type == watch.Deleted {
			delete(now, e.Key())
		} else {
			now[e.Key()] = e.Object
		}
		if !see(e, before, now) {
			return
		}
	}
}

// End returns the state after the last event.
func (t Timeline) End() State {
	end := State{}
	t.Play(func(_ Event, _ *unstructured.Unstructured, now State) bool {
		end = now
		return true
	})
	return maps.Clone(end)
}
