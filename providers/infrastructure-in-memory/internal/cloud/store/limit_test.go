package store

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestObjectsAreLimited(t *testing.T) {
	s := open(t, "")
	if _, err := Ensure(s, filled("large", maxObject)); !apierrors.IsRequestEntityTooLargeError(err) {
		t.Error(err)
	}
}

// TestHistoryIsLimitedInBytes checks the size of the history for watches that fall behind.
func TestHistoryIsLimitedInBytes(t *testing.T) {
	s := open(t, "")
	for i := range 40 {
		if _, err := Ensure(s, filled(fmt.Sprint("c", i), 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if s.history.bytes > historyMaxBytes || s.history.bytes != size(s.history.events) || len(s.history.events) == 0 {
		t.Errorf("the history has %d events with %d bytes, recorded size %d", len(s.history.events), size(s.history.events), s.history.bytes)
	}
}
