package store

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

// modify updates an object with change, if it exists and differs. The store's lock is held.
func (s *state) modify(o *Object, change func(*unstructured.Unstructured)) error {
	if o == nil {
		return nil
	}
	u := o.Unstructured()
	change(u)
	if unchanged(o, u) {
		return nil
	}
	updated, err := encode(o.Key, u, s.revision+1)
	if err != nil {
		return err
	}
	return s.put(Event{Type: watch.Modified, Object: updated, Previous: o})
}

// Power is which machines have power, as far as it concerns objects. It is called with the store's lock held.
type Power interface {
	// Dead reports whether a machine lost power.
	Dead(machine string) bool
	// MarkUnreachable sets the state of a Node or Pod to that of a dead machine.
	MarkUnreachable(u *unstructured.Unstructured)
}

// state is what a store's lock protects: the objects, and where changes are recorded.
type state struct {
	table
	history history
	journal *journal      // nil without Options.Journal
	changed chan struct{} // closed at the next change; nil without waiters
	closed  bool
	clock   clock.Clock
	power   Power
}

// put makes an event's object the current one (or, for Deleted, removes it) and notifies watchers. The group's lock is
// held and the object's revision is the next one.
func (s *state) put(e Event) error {
	if s.journal != nil {
		if err := s.journal.append(e); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	s.index(e)
	s.history.append(e)
	s.wake()
	return nil
}

// wake wakes all waiters. The store's lock is held.
func (s *state) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}
