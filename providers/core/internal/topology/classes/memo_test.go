package classes

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestGet(t *testing.T) {
	m := NewMemo[int](2)
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
		{"the same version is cached", "a", "1", 1, 1},
		{"another version computes", "a", "2", 2, 2},
		{"another object computes", "b", "2", 3, 3},
		{"both objects are cached", "a", "2", 2, 3},
		{"a third object evicts the least recently used one", "c", "1", 4, 4},
		{"the evicted object computes again", "b", "2", 5, 5},
		{"values without UID are not cached", "", "1", 6, 6},
		{"values without UID are still not cached", "", "1", 7, 7},
	}
	for _, s := range steps {
		got, err := m.Get(s.uid, s.version, compute)
		if err != nil || got != s.want || computed != s.amount {
			t.Errorf("%s: got %d (%v) after %d computations, want %d after %d", s.reason, got, err, computed, s.want, s.amount)
		}
	}
	if _, err := m.Get("d", "1", func() (int, error) { return 0, errors.New("boom") }); err == nil {
		t.Error("the error is not returned")
	}
	if got, err := m.Get("d", "1", compute); err != nil || got != 8 {
		t.Errorf("errors must not be cached: got %d, %v", got, err)
	}
}
