package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// world simulates a deployment and its MachineSets.
type world struct {
	Rollout
	// broken has the sets whose new Machines never become available.
	broken map[string]bool
}

// set returns a set of n available Machines; age orders the sets by time of creation.
func set(name string, age int, n int32) Set {
	return Set{Name: name, Created: time.Unix(int64(age), 0), Replicas: n, Actual: n, Available: n}
}

func (w *world) all() []*Set {
	var out []*Set
	for i := range w.Old {
		out = append(out, &w.Old[i])
	}
	if w.New != nil {
		out = append(out, w.New)
	}
	return out
}

// apply applies targets, and reports whether they changed anything.
func (w *world) apply(t *testing.T, targets Targets) (changed bool) {
	t.Helper()
	if len(targets) != len(w.all()) {
		t.Fatalf("%d sets have %d targets: %v", len(w.all()), len(targets), targets)
	}
	for _, s := range w.all() {
		target, ok := targets[s.Name]
		if !ok || target.Replicas < 0 {
			t.Fatalf("set %s has no valid target: %v", s.Name, targets)
		}
		changed = changed || s.Replicas != target.Replicas || s.Frozen != target.Frozen
		s.Replicas, s.Frozen = target.Replicas, target.Frozen
	}
	return changed
}

// work creates and deletes the Machines of every set. New Machines become available with the next call.
func (w *world) work() (changed bool) {
	for _, s := range w.all() {
		before := *s
		if !w.broken[s.Name] {
			s.Available = s.Actual
		}
		if s.Actual > s.Replicas || !s.Frozen {
			s.Actual = s.Replicas
		}
		s.Available = min(s.Available, s.Actual)
		changed = changed || before != *s
	}
	return changed
}

// String returns spec/actual/available of every set.
func (w *world) String() string {
	var parts []string
	for _, s := range w.all() {
		part := fmt.Sprintf("%s %d/%d/%d", s.Name, s.Replicas, s.Actual, s.Available)
		if s.Frozen {
			part += " frozen"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// run makes moves until nothing changes, and returns the state after each.
func (w *world) run(t *testing.T, decide func(Rollout) Targets) []string {
	t.Helper()
	var lines []string
	for range 100 {
		applied := w.apply(t, decide(w.Rollout))
		if applied {
			lines = append(lines, w.String())
		}
		if worked := w.work(); !applied && !worked {
			return lines
		}
	}
	t.Fatalf("the moves do not terminate:\n%s", strings.Join(lines, "\n"))
	return nil
}

// transcript is a world and its states after each move until nothing changes.
type transcript struct {
	reason string
	world  world
	want   []string
}

func (tc transcript) check(t *testing.T, decide func(Rollout) Targets) {
	t.Helper()
	got := tc.world.run(t, decide)
	if diff := cmp.Diff(tc.want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
	}
}

func TestRollingUpdateTranscripts(t *testing.T) {
	cases := map[string]transcript{
		"First": {
			reason: "a new deployment creates all Machines at once",
			world:  world{Rollout: Rollout{Desired: 3, MaxSurge: 1, New: &Set{Name: "b"}}},
			want:   []string{"b 3/0/0"},
		},
		"SurgeOne": {
			reason: "one Machine is added, then one deleted, each when the previous one is available",
			world:  world{Rollout: Rollout{Desired: 2, MaxSurge: 1, New: &Set{Name: "b"}, Old: []Set{set("a", 1, 2)}}},
			want: []string{
				"a 2/2/2, b 1/0/0",
				"a 1/2/2, b 1/1/1",
				"a 1/1/1, b 2/1/1",
				"a 0/1/1, b 2/2/2",
			},
		},
		"NoSurge": {
			reason: "without surge, one is deleted first",
			world:  world{Rollout: Rollout{Desired: 2, MaxUnavailable: 1, New: &Set{Name: "b"}, Old: []Set{set("a", 1, 2)}}},
			want: []string{
				"a 1/2/2, b 0/0/0",
				"a 1/1/1, b 1/0/0",
				"a 0/1/1, b 1/1/1",
				"a 0/0/0, b 2/1/1",
			},
		},
		"BothBounds": {
			reason: "surge and unavailability are used at the same time",
			world:  world{Rollout: Rollout{Desired: 4, MaxSurge: 2, MaxUnavailable: 1, New: &Set{Name: "b"}, Old: []Set{set("a", 1, 4)}}},
			want: []string{
				"a 3/4/4, b 2/0/0",
				"a 3/3/3, b 3/2/0",
				"a 1/3/3, b 3/3/2",
				"a 0/1/1, b 4/3/3",
			},
		},
		"ScaleDownMidway": {
			reason: "the old set is scaled down as far as the new one is available",
			world:  world{Rollout: Rollout{Desired: 2, MaxSurge: 1, New: ptrTo(set("b", 2, 1)), Old: []Set{set("a", 1, 4)}}},
			want: []string{
				"a 1/4/4, b 1/1/1",
				"a 1/1/1, b 2/1/1",
				"a 0/1/1, b 2/2/2",
			},
		},
		"NewTooBig": {
			reason: "the new set is scaled down to the desired replicas",
			world:  world{Rollout: Rollout{Desired: 2, MaxSurge: 1, New: ptrTo(set("b", 2, 5)), Old: []Set{set("a", 1, 1)}}},
			want:   []string{"a 0/1/1, b 2/5/5"},
		},
		"Zero": {
			reason: "no Machines are desired",
			world:  world{Rollout: Rollout{MaxSurge: 1, New: ptrTo(set("b", 2, 1)), Old: []Set{set("a", 1, 2)}}},
			want:   []string{"a 0/2/2, b 0/1/1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { tc.check(t, Rollout.RollingUpdate) })
	}
}

func TestRollingUpdateTranscriptsOfBrokenMachines(t *testing.T) {
	cases := map[string]transcript{
		"UnavailableFirst": {
			reason: "unavailable old Machines are deleted before available ones, the oldest set first",
			world: world{
				broken: map[string]bool{"a": true, "b": true},
				Rollout: Rollout{Desired: 3, MaxSurge: 1, New: &Set{Name: "d"}, Old: []Set{
					{Name: "b", Created: time.Unix(2, 0), Replicas: 1, Actual: 1},
					{Name: "a", Created: time.Unix(1, 0), Replicas: 1, Actual: 1},
					set("c", 3, 1),
				}},
			},
			want: []string{
				"b 1/1/0, a 1/1/0, c 1/1/1, d 1/0/0",
				"b 1/1/0, a 0/1/0, c 1/1/1, d 1/1/1",
				"b 1/1/0, a 0/0/0, c 1/1/1, d 2/1/1",
				"b 0/1/0, a 0/0/0, c 1/1/1, d 2/2/2",
				"b 0/0/0, a 0/0/0, c 1/1/1, d 3/2/2",
				"b 0/0/0, a 0/0/0, c 0/1/1, d 3/3/3",
			},
		},
		"UnavailableWithinBudget": {
			reason: "old Machines are deleted only as far as others are available",
			world: world{
				broken:  map[string]bool{"a": true},
				Rollout: Rollout{Desired: 3, MaxSurge: 1, New: ptrTo(set("b", 2, 1)), Old: []Set{{Name: "a", Created: time.Unix(1, 0), Replicas: 3, Actual: 3, Available: 2}}},
			},
			want: []string{
				"a 2/3/2, b 1/1/1",
				"a 2/2/2, b 2/1/1",
				"a 1/2/2, b 2/2/2",
				"a 1/1/1, b 3/2/2",
				"a 0/1/1, b 3/3/3",
			},
		},
		"NewIsBroken": {
			reason: "a broken template affects only the surge",
			world: world{
				broken:  map[string]bool{"b": true},
				Rollout: Rollout{Desired: 3, MaxSurge: 1, New: &Set{Name: "b"}, Old: []Set{set("a", 1, 3)}},
			},
			want: []string{"a 3/3/3, b 1/0/0"},
		},
		"Reverted": {
			reason: "after a broken template was reverted, the broken Machines are deleted first",
			world: world{
				broken:  map[string]bool{"b": true},
				Rollout: Rollout{Desired: 3, MaxSurge: 1, New: ptrTo(set("a", 1, 3)), Old: []Set{{Name: "b", Created: time.Unix(2, 0), Replicas: 1, Actual: 1}}},
			},
			want: []string{"b 0/1/0, a 3/3/3"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { tc.check(t, Rollout.RollingUpdate) })
	}
}

func ptrTo(s Set) *Set { return &s }

func TestOnDeleteTranscripts(t *testing.T) {
	cases := map[string]struct {
		reason string
		world  world
		// deleted has the sets of Machines that a user deletes one by one, each when nothing changes.
		deleted []string
		want    []string
	}{
		"Waits": {
			reason: "old Machines are kept, and their set is frozen",
			world:  world{Rollout: Rollout{Desired: 2, New: &Set{Name: "b"}, Old: []Set{set("a", 1, 2)}}},
			want:   []string{"a 2/2/2 frozen, b 0/0/0"},
		},
		"Replaces": {
			reason:  "each Machine that a user deletes is replaced by a new one",
			world:   world{Rollout: Rollout{Desired: 2, New: &Set{Name: "b"}, Old: []Set{set("a", 1, 2)}}},
			deleted: []string{"a", "a"},
			want: []string{
				"a 2/2/2 frozen, b 0/0/0",
				"a 1/1/1 frozen, b 1/0/0",
				"a 0/0/0 frozen, b 2/1/1",
			},
		},
		"ReplacesInTwoSets": {
			reason:  "users may delete Machines of any old set",
			world:   world{Rollout: Rollout{Desired: 2, New: &Set{Name: "c"}, Old: []Set{set("a", 1, 1), set("b", 2, 1)}}},
			deleted: []string{"b"},
			want: []string{
				"a 1/1/1 frozen, b 1/1/1 frozen, c 0/0/0",
				"a 1/1/1 frozen, b 0/0/0 frozen, c 1/0/0",
			},
		},
		"ScaleUp": {
			reason: "additional replicas have the new template",
			world:  world{Rollout: Rollout{Desired: 4, New: &Set{Name: "b"}, Old: []Set{set("a", 1, 2)}}},
			want:   []string{"a 2/2/2 frozen, b 2/0/0"},
		},
		"ScaleDown": {
			reason: "the oldest sets are scaled down first",
			world:  world{Rollout: Rollout{Desired: 2, New: ptrTo(set("c", 3, 1)), Old: []Set{set("b", 2, 1), set("a", 1, 2)}}},
			want:   []string{"b 1/1/1 frozen, a 0/2/2 frozen, c 1/1/1"},
		},
		"NewTooBig": {
			reason: "the new set is scaled down to the desired replicas, the old ones to zero",
			world:  world{Rollout: Rollout{Desired: 2, New: ptrTo(set("b", 2, 3)), Old: []Set{set("a", 1, 1)}}},
			want:   []string{"a 0/1/1 frozen, b 2/3/3"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.world.run(t, Rollout.OnDelete)
			for _, from := range tc.deleted {
				for _, s := range tc.world.all() {
					if s.Name == from {
						s.Actual, s.Available = s.Actual-1, s.Available-1
					}
				}
				got = append(got, tc.world.run(t, Rollout.OnDelete)...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOnDeleteFreezesFirst(t *testing.T) {
	cases := map[string]struct {
		reason string
		old    Set
		want   Target
	}{
		"NotFrozen": {reason: "a set that may still create Machines keeps its replicas",
			old: Set{Name: "a", Replicas: 3, Actual: 1}, want: Target{Replicas: 3, Frozen: true}},
		"Deleted": {reason: "a frozen set gives up the replicas of deleted Machines",
			old: Set{Name: "a", Replicas: 3, Actual: 2, Frozen: true}, want: Target{Replicas: 2, Frozen: true}},
		"Empty": {reason: "a set without replicas is not frozen",
			old: Set{Name: "a"}, want: Target{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := Rollout{Desired: 3, New: &Set{Name: "b"}, Old: []Set{tc.old}}
			if diff := cmp.Diff(tc.want, r.OnDelete()["a"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
