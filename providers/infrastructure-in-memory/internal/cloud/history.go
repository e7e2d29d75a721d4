package cloud

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// How much history a resource group keeps for watches that resume. Older watches get 410 Gone and list again, as with a
// real API server.
const (
	historyEvents    = 1024
	historyBytes     = 128 << 10
	historyMinEvents = 64
	// historyMaxBytes takes precedence over the minimum number of events, because objects may be large.
	historyMaxBytes = 4 << 20
)

// Event is a change of one object.
type Event struct {
	// Type is Added, Modified or Deleted.
	Type watch.EventType
	// Object is the object after the change; for Deleted the last state, at the revision of the deletion.
	Object *Object
	// Previous is the object before the change, nil for Added.
	Previous *Object
}

// history is the recent events of a group, oldest first. Revisions are strictly increasing.
type history struct {
	events []Event
	bytes  int
	// forgotten is the revision up to which events have been dropped.
	forgotten uint64
}

func (h *history) append(e Event) {
	h.events = append(h.events, e)
	h.bytes += len(e.Object.raw)
	if h.bytes <= historyMaxBytes && (len(h.events) <= historyMinEvents || len(h.events) <= historyEvents && h.bytes <= historyBytes) {
		return
	}
	// Drop a quarter at a time, to amortize the cost of the shift.
	drop := len(h.events)/4 + 1
	for left := h.bytes - size(h.events[:drop]); left > historyMaxBytes; drop++ {
		left -= len(h.events[drop].Object.raw)
	}
	for _, old := range h.events[:drop] {
		h.bytes -= len(old.Object.raw)
		h.forgotten = old.Object.Revision
	}
	kept := copy(h.events, h.events[drop:])
	clear(h.events[kept:])
	h.events = h.events[:kept]
}

func size(events []Event) int {
	bytes := 0
	for _, e := range events {
		bytes += len(e.Object.raw)
	}
	return bytes
}

// since returns the events after a revision.
func (h *history) since(revision uint64) ([]Event, error) {
	if revision < h.forgotten {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", revision, h.forgotten))
	}
	i := len(h.events)
	for i > 0 && h.events[i-1].Object.Revision > revision {
		i--
	}
	return h.events[i:], nil
}

// Watcher reads the changes of one collection, in order and without gaps. It holds no resources and need not be closed.
// It is not safe for concurrent use.
type Watcher struct {
	group     *Group
	resource  Resource
	namespace string
	selector  Selector
	revision  uint64
}

// Watch returns a Watcher of the changes after a revision to the objects of a resource, in one namespace or, if it is
// empty, in all. A revision from the future is a retriable error; one that is too old is reported by the first Poll.
func (g *Group) Watch(r Resource, namespace string, after uint64, s Selector) (*Watcher, error) {
	if err := g.CheckReached(after); err != nil {
		return nil, err
	}
	return &Watcher{group: g, resource: r, namespace: namespace, selector: s, revision: after}, nil
}

// CheckReached returns a retriable error if a revision is from the future.
func (g *Group) CheckReached(revision uint64) error {
	current := g.Revision()
	if revision <= current {
		return nil
	}
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", revision, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

// UnchangedSince reports whether the objects of a resource are known to be unchanged since a revision.
func (g *Group) UnchangedSince(r Resource, revision uint64) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	events, err := g.history.since(revision)
	return err == nil && !slices.ContainsFunc(events, func(e Event) bool { return e.Object.Key.Resource == r })
}

// Poll returns the changes since the last Poll, which may be none, and a channel that is closed at the next change of
// anything in the group or of its faults. An object that starts or stops matching the selector is reported as Added or
// Deleted. The error is 410 Gone if the watcher fell behind the history, and ErrGroupDeleted after the group is deleted;
// both are final.
func (w *Watcher) Poll() ([]Event, <-chan struct{}, error) {
	events, changed, err := w.take()
	if err != nil || len(events) == 0 {
		return nil, changed, err
	}
	w.revision = events[len(events)-1].Object.Revision

	selected := events[:0]
	for _, e := range events {
		if e.Object.Key.Resource != w.resource || w.namespace != "" && w.namespace != e.Object.Key.Namespace {
			continue
		}
		if e, ok := w.selector.apply(e); ok {
			selected = append(selected, e)
		}
	}
	return selected, changed, nil
}

// Revision is how far the watcher has read: Poll has reported all selected changes up to it. It is used for bookmarks.
func (w *Watcher) Revision() uint64 { return w.revision }

func (w *Watcher) take() ([]Event, <-chan struct{}, error) {
	g := w.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, ErrGroupDeleted
	}
	events, err := g.history.since(w.revision)
	if err != nil {
		return nil, nil, err
	}
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return append([]Event(nil), events...), g.changed, nil
}

// broadcast wakes all waiters. The group's lock is held.
func (g *Group) broadcast() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}
