package store

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Watcher reads the changes of one collection, in order and without gaps. It holds no resources and need not be closed.
// It is not safe for concurrent use.
type Watcher struct {
	store     *Store
	resource  Resource
	namespace string
	selector  Selector
	revision  uint64
	epoch     int
}

// Watch returns a Watcher of the changes after a revision to the objects of a resource, in one namespace or, if it is
// empty, in all. A revision from the future is a retriable error; one that is too old is reported by the first Poll.
func (s *Store) Watch(r Resource, namespace string, after uint64, selector Selector) (*Watcher, error) {
	if err := s.CheckReached(after); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &Watcher{store: s, resource: r, namespace: namespace, selector: selector, revision: after, epoch: s.history.epoch}, nil
}

// CheckReached returns a retriable error if a revision is from the future.
func (s *Store) CheckReached(revision uint64) error {
	current := s.Revision()
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
func (s *Store) UnchangedSince(r Resource, revision uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	events, err := s.history.since(revision)
	return err == nil && !slices.ContainsFunc(events, func(e Event) bool { return e.Object.Key.Resource == r })
}

// Poll returns the changes since the last Poll, which may be none, and a channel that is closed at the next change of
// anything in the group or of its faults. An object that starts or stops matching the selector is reported as Added or
// Deleted. The error is 410 Gone if the watcher fell behind the history, and ErrDeleted after the store is closed;
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
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, ErrDeleted
	}
	if w.epoch != s.history.epoch {
		return nil, nil, tooOld(w.revision, s.history.forgotten)
	}
	events, err := s.history.since(w.revision)
	if err != nil {
		return nil, nil, err
	}
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return append([]Event(nil), events...), s.changed, nil
}
