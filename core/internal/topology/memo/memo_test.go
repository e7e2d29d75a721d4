package memo

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestGet(t *testing.T) {
	m := New[int](2)
	computed := 0
	compute := func() (int, error) {
		computed++
		return computed, nil
	}
	steps := []struct {
		reason       string
		uid          types.UID
		version      string
		want, amount int
	}{
		{"first use computes", "a", "1", 1, 1},
		{"the same version does not", "a", "1", 1, 1},
		{"another version does", "a", "2", 2, 2},
		{"another object does", "b", "2", 3, 3},
		{"both are kept", "a", "2", 2, 3},
		{"a third one pushes out the one used least", "c", "1", 4, 4},
		{"which is computed again", "b", "2", 5, 5},
		{"no UID, nothing kept", "", "1", 6, 6},
		{"no UID, nothing kept, again", "", "1", 7, 7},
	}
	for _, s := range steps {
		got, err := m.Get(s.uid, s.version, compute)
		if err != nil || got != s.want || computed != s.amount {
			t.Errorf("%s: got %d (%v) after %d computations, want %d after %d", s.reason, got, err, computed, s.want, s.amount)
		}
	}
	if _, err := m.Get("d", "1", func() (int, error) { return 0, errors.New("boom") }); err == nil {
		t.Error("an error is returned")
	}
	if got, err := m.Get("d", "1", compute); err != nil || got != 8 {
		t.Errorf("an error is not kept: got %d, %v", got, err)
	}
}
