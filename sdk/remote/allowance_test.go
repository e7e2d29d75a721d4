package remote

import (
	"errors"
	"testing"
)

// Clusters that send a lot share the pool; small clusters are not affected, and memory that is released can be used again.
func TestAllowances(t *testing.T) {
	const mib = 1 << 20
	p := &pool{}
	account := func() *allowance { return &allowance{pool: p} }
	large, larger, small, late := account(), account(), account(), account()
	steps := []struct {
		reason   string
		of       *allowance
		take     int64
		rejected bool
	}{
		{"the share that is free", large, freeShare, false},
		{"more than that is taken from the pool", large, freeShare + 300*mib, false},
		{"so does another cluster", larger, freeShare + 212*mib, false},
		{"the pool is empty", larger, freeShare + 213*mib, true},
		{"a rejected request takes nothing", larger, freeShare + 212*mib, false},
		{"a small cluster has its share", small, freeShare, false},
		{"and no more", small, freeShare + 1, true},
		{"the first one ends", large, 0, false},
		{"what it had is free", late, freeShare + 300*mib, false},
		{"and no more than that", small, freeShare + 1, true},
	}
	for _, step := range steps {
		var limit *limitError
		if err := step.of.take(step.take); errors.As(err, &limit) != step.rejected || !step.rejected && err != nil {
			t.Fatalf("%s: error %v, rejected should be %t", step.reason, err, step.rejected)
		}
	}
	for _, a := range []*allowance{large, larger, small, late} {
		if err := a.take(0); err != nil {
			t.Error(err)
		}
	}
	if p.used != 0 {
		t.Errorf("%d bytes are in use after all have ended", p.used)
	}
}
