package controller

import (
	"testing"
	"time"
)

func TestVerified(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	before, after := state{"spec", "deployments", "others"}, state{"spec", "deployments", "other others"}
	type expected struct {
		reason string
		state  state
		at     time.Duration
		// due is when the comparison is due, negative: not at all.
		due time.Duration
	}
	v := newVerified()
	check := func(steps ...expected) {
		t.Helper()
		for _, s := range steps {
			due, changed := v.due("a", s.state, start.Add(s.at))
			if !changed {
				due = start.Add(-1)
			}
			if got := due.Sub(start); max(got, -1) != s.due {
				t.Errorf("%s: due at %s, want %s", s.reason, got, s.due)
			}
		}
	}
	check(expected{"never compared", before, time.Second, time.Second})
	v.set("a", before, true)
	check(
		expected{"as it was", before, time.Second, -1},
		expected{"another spec", state{"other spec", "deployments", "others"}, 2 * time.Second, 2 * time.Second},
		expected{"a Deployment changed", state{"spec", "other deployments", "others"}, 2 * time.Second, 2 * time.Second},
		expected{"another object changed", after, 3 * time.Second, 13 * time.Second},
		expected{"and more", state{"spec", "deployments", "more others"}, 5 * time.Second, 13 * time.Second},
		expected{"back again", before, 6 * time.Second, -1},
		expected{"it changed again", after, 20 * time.Second, 30 * time.Second},
	)
	v.set("a", after, false)
	check(
		expected{"there was nothing to write", after, 31 * time.Second, -1},
		expected{"so the next change settles longer", before, 40 * time.Second, time.Minute},
	)
	for range 20 {
		v.set("a", before, false)
	}
	check(expected{"but not forever", after, time.Minute, time.Minute + maxSettling})
	v.set("a", before, true)
	check(expected{"there was something to write", after, time.Minute, time.Minute + settling})

	v.fail("a", "spec", start)
	if !v.failedUntil("a", "spec").Equal(start) || !v.failedUntil("a", "other spec").IsZero() {
		t.Error("the failure is not remembered for its spec only")
	}
	v.set("a", before, true)
	if !v.failedUntil("a", "spec").IsZero() {
		t.Error("a success does not end the failure")
	}
	v.forget("a")
	check(expected{"forgotten", before, time.Hour, time.Hour})
}
