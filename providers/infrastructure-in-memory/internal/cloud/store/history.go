package store

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// epoch counts how often all objects were replaced. Revisions of different epochs cannot be compared.
	epoch int
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
		return nil, tooOld(revision, h.forgotten)
	}
	i := len(h.events)
	for i > 0 && h.events[i-1].Object.Revision > revision {
		i--
	}
	return h.events[i:], nil
}

// tooOld returns the error for a revision whose later events have been dropped.
func tooOld(revision, forgotten uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", revision, forgotten))
}
