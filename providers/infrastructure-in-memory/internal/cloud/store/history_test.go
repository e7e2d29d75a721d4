package store

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestHistoryIsBounded(t *testing.T) {
	s := open(t, "")
	from := s.Revision()
	count(t, s, 3*historyEvents)
	if n := len(s.history.events); n > historyEvents || s.history.bytes > 2*historyBytes {
		t.Errorf("the history has %d events with %d bytes", n, s.history.bytes)
	}
	w, err := s.Watch(Resource{Resource: "configmaps"}, "", from, Selector{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Poll(); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch that fell behind: %v", err)
	}
	recent, err := s.Watch(Resource{Resource: "configmaps"}, "", s.Revision()-10, Selector{})
	if err != nil {
		t.Fatal(err)
	}
	if events, _, err := recent.Poll(); err != nil || len(events) != 10 {
		t.Errorf("recent history: %d events, %v", len(events), err)
	}
}
