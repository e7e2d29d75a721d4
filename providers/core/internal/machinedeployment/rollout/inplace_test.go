package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// movable makes a set one whose Machines can be updated in place.
func movable(s Set, change ...func(*Set)) Set {
	s.Movable = true
	for _, f := range change {
		f(&s)
	}
	return s
}

func moving(s *Set) { s.Moving = true }

func TestUpdateInPlace(t *testing.T) {
	type targets = map[string]Target
	for _, tc := range []struct {
		reason string
		in     Rollout
		want   targets
	}{
		{
			reason: "one Machine may be unavailable: it moves, and none is created",
			in:     Rollout{Desired: 3, MaxUnavailable: 1, New: &Set{Name: "new"}, Old: []Set{movable(set("old", 1, 3))}},
			want:   targets{"old": {Replicas: 2, Moving: true}, "new": {}},
		},
		{
			reason: "a surge waits while a Machine can move without it",
			in:     Rollout{Desired: 3, MaxSurge: 2, MaxUnavailable: 1, New: &Set{Name: "new"}, Old: []Set{movable(set("old", 1, 3))}},
			want:   targets{"old": {Replicas: 2, Moving: true}, "new": {}},
		},
		{
			reason: "one new Machine gets it started, whatever the surge",
			in:     Rollout{Desired: 3, MaxSurge: 3, New: &Set{Name: "new"}, Old: []Set{movable(set("old", 1, 3))}},
			want:   targets{"old": {Replicas: 3, Moving: true}, "new": {Replicas: 1}},
		},
		{
			reason: "a Machine on its way counts: neither another one nor a new one",
			in:     Rollout{Desired: 3, MaxSurge: 1, New: &Set{Name: "new"}, Old: []Set{movable(Set{Name: "old", Replicas: 2, Actual: 3, Available: 3}, moving)}},
			want:   targets{"old": {Replicas: 2, Moving: true}, "new": {}},
		},
		{
			reason: "nothing moves while a Machine is updated, unless more may be unavailable",
			in: Rollout{
				Desired: 3, MaxSurge: 1, MaxUnavailable: 1, New: &Set{Name: "new", Replicas: 1, Actual: 1, Updating: 1},
				Old: []Set{movable(set("old", 1, 2), moving)},
			},
			want: targets{"old": {Replicas: 2, Moving: true}, "new": {Replicas: 1}},
		},
		{
			reason: "a Machine that is missing is created, although others are updated",
			in: Rollout{
				Desired: 3, MaxUnavailable: 1, New: &Set{Name: "new", Replicas: 1, Actual: 1, Updating: 1}, Old: []Set{movable(set("old", 1, 1), moving)},
			},
			want: targets{"old": {Replicas: 1, Moving: true}, "new": {Replicas: 2}},
		},
		{
			reason: "at most as many move as the new set lacks",
			in:     Rollout{Desired: 3, MaxUnavailable: 3, New: &Set{Name: "new", Replicas: 2, Actual: 2, Available: 2}, Old: []Set{movable(set("old", 1, 3), moving)}},
			want:   targets{"old": {Replicas: 2, Moving: true}, "new": {Replicas: 2}},
		},
		{
			reason: "the rest is deleted",
			in:     Rollout{Desired: 3, MaxSurge: 1, New: &Set{Name: "new", Replicas: 3, Actual: 3, Available: 3}, Old: []Set{movable(set("old", 1, 1), moving)}},
			want:   targets{"old": {}, "new": {Replicas: 3}},
		},
		{
			reason: "but not before the last one has arrived: it would be deleted instead of moving",
			in: Rollout{
				Desired: 3, MaxUnavailable: 3, New: &Set{Name: "new", Replicas: 2, Actual: 2, Available: 2},
				Old: []Set{movable(Set{Name: "old", Replicas: 1, Actual: 2, Available: 2}, moving)},
			},
			want: targets{"old": {Replicas: 1, Moving: true}, "new": {Replicas: 2}},
		},
		{
			reason: "sets that cannot be updated roll as usual",
			in: Rollout{
				Desired: 3, MaxUnavailable: 1, New: &Set{Name: "new"}, Old: []Set{set("older", 1, 2), movable(set("old", 2, 1))},
			},
			want: targets{"older": {Replicas: 1}, "old": {Replicas: 1, Moving: true}, "new": {}},
		},
		{
			reason: "scaled down in the middle: the new set keeps to what is desired",
			in:     Rollout{Desired: 1, MaxUnavailable: 1, New: &Set{Name: "new", Replicas: 2, Actual: 2, Available: 2}, Old: []Set{movable(set("old", 1, 1), moving)}},
			want:   targets{"old": {}, "new": {Replicas: 1}},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(Targets(tc.want), tc.in.UpdateInPlace()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestUpdateInPlaceToTheEnd plays rollouts with every surge and unavailability. Machines arrive one move later, and are updated one later.
func TestUpdateInPlaceToTheEnd(t *testing.T) {
	for surge := range int32(3) {
		for unavailable := range int32(4) {
			if surge+unavailable == 0 {
				continue
			}
			r := Rollout{Desired: 3, MaxSurge: surge, MaxUnavailable: unavailable, New: &Set{Name: "new"}, Old: []Set{movable(set("old", 1, 3))}}
			created, old := int32(0), &r.Old[0]
			for moves := 0; ; moves++ {
				if moves > 30 {
					t.Fatalf("surge %d, unavailable %d: it does not end: %+v %+v", surge, unavailable, *r.New, *old)
				}
				r.New.Available, r.New.Updating = r.New.Actual, 0
				targets := r.UpdateInPlace()
				if *old == (Set{Name: "old", Created: old.Created, Movable: true}) && targets["new"].Replicas == 3 && r.New.Replicas == 3 {
					break
				}
				created += targets["new"].Replicas - r.New.Replicas
				r.New.Replicas, r.New.Actual = targets["new"].Replicas, targets["new"].Replicas
				old.Replicas, old.Moving = targets["old"].Replicas, targets["old"].Moving
				if gone := old.Actual - old.Replicas; old.Moving {
					r.New.Replicas, r.New.Actual, r.New.Updating = r.New.Replicas+gone, r.New.Actual+gone, gone
				}
				old.Actual, old.Available = old.Replicas, old.Replicas
				if available := r.New.Available + old.Available; available < 3-unavailable {
					t.Errorf("surge %d, unavailable %d: only %d are available", surge, unavailable, available)
				}
			}
			if want := map[bool]int32{true: 1, false: 0}[unavailable == 0]; created != want {
				t.Errorf("surge %d, unavailable %d: %d Machines are created, want %d", surge, unavailable, created, want)
			}
		}
	}
}
