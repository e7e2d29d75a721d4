package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// world is a deployment whose machines obey.
type world struct {
	Rollout
	// broken are sets whose new machines never become available.
	broken map[string]bool
}

// set is a set of n machines, all available, the age-th oldest.
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

// tell does what was decided, and reports whether that changed anything.
func (w *world) tell(t *testing.T, targets Targets) (changed bool) {
	t.Helper()
	if len(targets) != len(w.all()) {
		t.Fatalf("%d sets have %d targets: %v", len(w.all()), len(targets), targets)
	}
	for _, s := range w.all() {
		target, ok := targets[s.Name]
		if !ok || target.Replicas < 0 {
			t.Fatalf("set %s has no possible target: %v", s.Name, targets)
		}
		changed = changed || s.Replicas != target.Replicas || s.Frozen != target.Frozen
		s.Replicas, s.Frozen = target.Replicas, target.Frozen
	}
	return changed
}

// work lets every set make or delete its machines; which of them are available after that, the next call shows.
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

// String is spec/actual/available of every set.
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

// run is what happens until nothing does.
func (w *world) run(t *testing.T, decide func(Rollout) Targets) []string {
	t.Helper()
	var lines []string
	for range 100 {
		told := w.tell(t, decide(w.Rollout))
		if told {
			lines = append(lines, w.String())
		}
		if worked := w.work(); !told && !worked {
			return lines
		}
	}
	t.Fatalf("nothing comes to an end:\n%s", strings.Join(lines, "\n"))
	return nil
}

// transcript is a world and the decisions it sees until nothing changes any more.
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
			reason: "a new deployment has all its machines at once",
			world:  world{Rollout: Rollout{Desired: 3, MaxSurge: 1, New: &Set{Name: "b"}}},
			want:   []string{"b 3/0/0"},
		},
		"SurgeOne": {
			reason: "one more, then one less, each once the former is available",
			world:  world{Rollout: Rollout{Desired: 2, MaxSurge: 1, New: &Set{Name: "b"}, Old: []Set{set("a", 1, 2)}}},
			want: []string{
				"a 2/2/2, b 1/0/0",
				"a 1/2/2, b 1/1/1",
				"a 1/1/1, b 2/1/1",
				"a 0/1/1, b 2/2/2",
			},
		},
		"NoSurge": {
			reason: "without surge one goes first",
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
		"ShrinksMidway": {
			reason: "fewer replicas are taken from the old set as far as the new one is available",
			world:  world{Rollout: Rollout{Desired: 2, MaxSurge: 1, New: ptrTo(set("b", 2, 1)), Old: []Set{set("a", 1, 4)}}},
			want: []string{
				"a 1/4/4, b 1/1/1",
				"a 1/1/1, b 2/1/1",
				"a 0/1/1, b 2/2/2",
			},
		},
		"NewTooBig": {
			reason: "the new set shrinks to what is desired",
			world:  world{Rollout: Rollout{Desired: 2, MaxSurge: 1, New: ptrTo(set("b", 2, 5)), Old: []Set{set("a", 1, 1)}}},
			want:   []string{"a 0/1/1, b 2/5/5"},
		},
		"Zero": {
			reason: "nothing is desired, nothing stays",
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
			reason: "old machines that are of no use go before any that are, the oldest set first",
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
			reason: "as many old machines may go as others are available in their place",
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
		"StaysWhenNewIsBroken": {
			reason: "a template that does not work costs the surge and nothing else",
			world: world{
				broken:  map[string]bool{"b": true},
				Rollout: Rollout{Desired: 3, MaxSurge: 1, New: &Set{Name: "b"}, Old: []Set{set("a", 1, 3)}},
			},
			want: []string{"a 3/3/3, b 1/0/0"},
		},
		"GoesBack": {
			reason: "of a broken template back to the former one: the broken machines go first",
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
		// deleted are machines that a person deletes from a set once nothing else happens, one after the other.
		deleted []string
		want    []string
	}{
		"Waits": {
			reason: "old machines are left alone, their set only stops making new ones",
			world:  world{Rollout: Rollout{Desired: 2, New: &Set{Name: "b"}, Old: []Set{set("a", 1, 2)}}},
			want:   []string{"a 2/2/2 frozen, b 0/0/0"},
		},
		"Replaces": {
			reason:  "for each machine that a person deletes comes a new one",
			world:   world{Rollout: Rollout{Desired: 2, New: &Set{Name: "b"}, Old: []Set{set("a", 1, 2)}}},
			deleted: []string{"a", "a"},
			want: []string{
				"a 2/2/2 frozen, b 0/0/0",
				"a 1/1/1 frozen, b 1/0/0",
				"a 0/0/0 frozen, b 2/1/1",
			},
		},
		"ReplacesInTwoSets": {
			reason:  "machines may go from any of the old sets",
			world:   world{Rollout: Rollout{Desired: 2, New: &Set{Name: "c"}, Old: []Set{set("a", 1, 1), set("b", 2, 1)}}},
			deleted: []string{"b"},
			want: []string{
				"a 1/1/1 frozen, b 1/1/1 frozen, c 0/0/0",
				"a 1/1/1 frozen, b 0/0/0 frozen, c 1/0/0",
			},
		},
		"Grows": {
			reason: "replicas that are added are of the new template",
			world:  world{Rollout: Rollout{Desired: 4, New: &Set{Name: "b"}, Old: []Set{set("a", 1, 2)}}},
			want:   []string{"a 2/2/2 frozen, b 2/0/0"},
		},
		"Shrinks": {
			reason: "what is too much goes from the oldest sets",
			world:  world{Rollout: Rollout{Desired: 2, New: ptrTo(set("c", 3, 1)), Old: []Set{set("b", 2, 1), set("a", 1, 2)}}},
			want:   []string{"b 1/1/1 frozen, a 0/2/2 frozen, c 1/1/1"},
		},
		"NewTooBig": {
			reason: "the new set shrinks to what is desired, the old ones go",
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
		"NotFrozen": {reason: "a set that may still be making machines keeps its replicas",
			old: Set{Name: "a", Replicas: 3, Actual: 1}, want: Target{Replicas: 3, Frozen: true}},
		"Gone": {reason: "then it gives up those that are gone",
			old: Set{Name: "a", Replicas: 3, Actual: 2, Frozen: true}, want: Target{Replicas: 2, Frozen: true}},
		"Empty": {reason: "an empty set is not written for nothing",
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
