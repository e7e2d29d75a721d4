package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDrift(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	service, role := CachedKinds()[2], CachedKinds()[4]
	before := state{"spec", "deployments", componentState{service: "1"}}
	after := state{"spec", "deployments", componentState{service: "2"}}
	type expected struct {
		reason string
		state  state
		at     time.Duration
		// due is when the comparison is due, negative: not at all.
		due  time.Duration
		only []schema.GroupVersionKind
	}
	d := newDrift()
	check := func(steps ...expected) {
		t.Helper()
		for _, s := range steps {
			due, only, changed := d.due("a", s.state, start.Add(s.at))
			if !changed {
				due = start.Add(-1)
			}
			if got := due.Sub(start); max(got, -1) != s.due {
				t.Errorf("%s: due at %s, want %s", s.reason, got, s.due)
			}
			if diff := cmp.Diff(s.only, only); diff != "" {
				t.Errorf("%s: kinds: -want +got:\n%s", s.reason, diff)
			}
		}
	}
	check(expected{"never compared", before, time.Second, time.Second, nil})
	d.compared("a", before, true)
	check(
		expected{"as it was", before, time.Second, -1, nil},
		expected{"another spec", state{"other spec", "deployments", before.others}, 2 * time.Second, 2 * time.Second, nil},
		expected{"a Deployment changed", state{"spec", "other deployments", before.others}, 2 * time.Second, 2 * time.Second, nil},
		expected{"another object changed", after, 3 * time.Second, 13 * time.Second, []schema.GroupVersionKind{service}},
		expected{"and more", state{"spec", "deployments", componentState{service: "2", role: "1"}}, 5 * time.Second, 13 * time.Second, []schema.GroupVersionKind{service, role}},
		expected{"back again", before, 6 * time.Second, -1, nil},
		expected{"it changed again", after, 20 * time.Second, 30 * time.Second, []schema.GroupVersionKind{service}},
	)
	d.compared("a", after, false)
	check(
		expected{"there was nothing to write", after, 31 * time.Second, -1, nil},
		expected{"so the next change settles longer", before, 40 * time.Second, time.Minute, []schema.GroupVersionKind{service}},
	)
	for range 20 {
		d.compared("a", before, false)
	}
	check(expected{"but not forever", after, time.Minute, time.Minute + maxSettling, []schema.GroupVersionKind{service}})
	d.compared("a", before, true)
	check(expected{"there was something to write", after, time.Minute, time.Minute + settling, []schema.GroupVersionKind{service}})

	d.fail("a", "spec", start)
	if !d.failedUntil("a", "spec").Equal(start) || !d.failedUntil("a", "other spec").IsZero() {
		t.Error("the failure is not remembered for its spec only")
	}
	d.compared("a", before, true)
	if !d.failedUntil("a", "spec").IsZero() {
		t.Error("a success does not end the failure")
	}
	d.forget("a")
	check(expected{"forgotten", before, time.Hour, time.Hour, nil})
}
