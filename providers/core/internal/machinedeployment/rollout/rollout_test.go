package rollout

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestBounds(t *testing.T) {
	number := func(n int32) *intstr.IntOrString { v := intstr.FromInt32(n); return &v }
	text := func(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }
	cases := map[string]struct {
		reason                     string
		desired                    int32
		surge, unavailable         *intstr.IntOrString
		wantSurge, wantUnavailable int32
		err                        string
	}{
		"Defaults":    {reason: "one surge Machine, none unavailable", desired: 3, wantSurge: 1},
		"Percent":     {reason: "surge is rounded up, unavailability down", desired: 5, surge: text("25%"), unavailable: text("25%"), wantSurge: 2, wantUnavailable: 1},
		"BothZero":    {reason: "otherwise a rollout could not make progress", desired: 3, surge: number(0), unavailable: number(0), wantUnavailable: 1},
		"RoundedZero": {reason: "the percentage is rounded down to zero", desired: 3, surge: number(0), unavailable: text("10%"), wantUnavailable: 1},
		"TooMany":     {reason: "maxUnavailable is at most the number of desired Machines", desired: 2, surge: number(0), unavailable: number(5), wantUnavailable: 2},
		"None":        {reason: "no Machines are desired", surge: number(0), unavailable: number(1)},
		"BadSurge":    {reason: "the text is not a percentage", desired: 1, surge: text("some"), err: `maxSurge: must be a number or a percentage`},
		"BadUnavailable": {reason: "the text is not a percentage", desired: 1, unavailable: text("some"),
			err: `maxUnavailable: must be a number or a percentage`},
		"HugeSurge":     {reason: "Desired plus surge fits into an int32", desired: 3, surge: number(math.MaxInt32), wantSurge: math.MaxInt32 - 3},
		"HugePercent":   {reason: "a percentage that is too large, too", desired: 3, surge: text("9223372036854775807%"), unavailable: text("9223372036854775807%"), wantSurge: math.MaxInt32 - 3, wantUnavailable: 3},
		"HugeDesired":   {reason: "there is no room for a surge", desired: math.MaxInt32, surge: text("50%"), unavailable: text("50%"), wantUnavailable: math.MaxInt32 / 2},
		"Negative":      {reason: "negative numbers count as zero", desired: 3, surge: number(-1), unavailable: number(math.MinInt32), wantUnavailable: 1},
		"NegativeShare": {reason: "negative percentages count as zero", desired: 3, surge: text("-9223372036854775807%"), unavailable: text("-50%"), wantUnavailable: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			surge, unavailable, err := Bounds(tc.desired, tc.surge, tc.unavailable)
			if got := message(err); got != tc.err {
				t.Fatalf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
			if surge != tc.wantSurge || unavailable != tc.wantUnavailable {
				t.Errorf("%s: got %d and %d, want %d and %d", tc.reason, surge, unavailable, tc.wantSurge, tc.wantUnavailable)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// scaling is one move of a paused rollout.
type scaling struct {
	reason       string
	rollout      Rollout
	proportional bool
	want         Targets
}

func (tc scaling) check(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff(tc.want, tc.rollout.Scale(tc.proportional)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
	}
}

func scaledAt(s Set, desired, limit int32) Set {
	s.Desired, s.Max = desired, limit
	return s
}

func TestScale(t *testing.T) {
	cases := map[string]scaling{
		"Nothing": {reason: "there are no sets, and none is created while paused", rollout: Rollout{Desired: 3}, want: Targets{}},
		"OneActive": {
			reason:  "the only set with replicas is scaled, new or old",
			rollout: Rollout{Desired: 5, New: ptrTo(set("b", 2, 0)), Old: []Set{set("a", 1, 3)}},
			want:    Targets{"a": {Replicas: 5}, "b": {}},
		},
		"NoneActive": {
			reason:  "without replicas, the new set is scaled up",
			rollout: Rollout{Desired: 2, New: ptrTo(set("b", 2, 0)), Old: []Set{set("a", 1, 0)}},
			want:    Targets{"a": {}, "b": {Replicas: 2}},
		},
		"NoneActiveNoNew": {
			reason:  "without replicas and new set, the most recent set is scaled up",
			rollout: Rollout{Desired: 2, Old: []Set{set("b", 2, 0), set("a", 1, 0)}},
			want:    Targets{"a": {}, "b": {Replicas: 2}},
		},
		"Saturated": {
			reason:       "old sets are scaled to zero if the new set is saturated",
			rollout:      Rollout{Desired: 3, MaxSurge: 1, New: ptrTo(scaledAt(set("b", 2, 3), 3, 4)), Old: []Set{set("a", 1, 1)}},
			proportional: true,
			want:         Targets{"a": {}, "b": {Replicas: 3}},
		},
		"NotProportional": {
			reason:  "OnDelete does not scale several sets",
			rollout: Rollout{Desired: 7, New: ptrTo(set("b", 2, 1)), Old: []Set{{Name: "a", Replicas: 3, Frozen: true}}},
			want:    Targets{"a": {Replicas: 3, Frozen: true}, "b": {Replicas: 1}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { tc.check(t) })
	}
}

func TestScaleProportionally(t *testing.T) {
	cases := map[string]scaling{
		"ScaleUp": {
			reason:       "sets are scaled up in proportion, the largest gets the remainder",
			rollout:      Rollout{Desired: 20, MaxSurge: 2, New: ptrTo(scaledAt(set("b", 2, 4), 10, 12)), Old: []Set{scaledAt(set("a", 1, 8), 10, 12)}},
			proportional: true,
			want:         Targets{"a": {Replicas: 15}, "b": {Replicas: 7}},
		},
		"ScaleUpNewestFirst": {
			reason:       "the newer one of equal sets gets the remainder",
			rollout:      Rollout{Desired: 6, MaxSurge: 1, New: ptrTo(scaledAt(set("b", 2, 2), 3, 4)), Old: []Set{scaledAt(set("a", 1, 2), 3, 4)}},
			proportional: true,
			want:         Targets{"a": {Replicas: 3}, "b": {Replicas: 4}},
		},
		"ScaleUpNewestRevisionFirst": {
			reason:       "the revision decides between sets created in the same second",
			rollout:      Rollout{Desired: 6, MaxSurge: 1, New: ptrTo(Set{Name: "a", Revision: 9, Replicas: 2, Max: 4}), Old: []Set{{Name: "b", Revision: 8, Replicas: 2, Max: 4}}},
			proportional: true,
			want:         Targets{"a": {Replicas: 4}, "b": {Replicas: 3}},
		},
		"ScaleDown": {
			reason:       "sets are scaled down in proportion, the older one of equal sets more",
			rollout:      Rollout{Desired: 2, MaxSurge: 1, New: ptrTo(scaledAt(set("b", 2, 3), 5, 6)), Old: []Set{scaledAt(set("a", 1, 3), 5, 6)}},
			proportional: true,
			want:         Targets{"a": {Replicas: 1}, "b": {Replicas: 2}},
		},
		"ToZero": {
			reason:       "the surge does not apply to zero replicas",
			rollout:      Rollout{MaxSurge: 1, New: ptrTo(scaledAt(set("b", 2, 3), 5, 6)), Old: []Set{scaledAt(set("a", 1, 3), 5, 6)}},
			proportional: true,
			want:         Targets{"a": {}, "b": {}},
		},
		"UnknownSize": {
			reason:       "for sets without annotations, the number of Machines counts",
			rollout:      Rollout{Desired: 7, MaxSurge: 1, New: ptrTo(set("b", 2, 1)), Old: []Set{set("a", 1, 3)}},
			proportional: true,
			want:         Targets{"a": {Replicas: 6}, "b": {Replicas: 2}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { tc.check(t) })
	}
}

// TestAnyState checks that one move from a random state stays within its bounds, and that moves terminate.
func TestAnyState(t *testing.T) {
	for seed := range uint64(20000) {
		random := rand.New(rand.NewPCG(seed, 0))
		r := anyRollout(random)
		w := world{Rollout: r}
		targets := r.RollingUpdate()
		total, kept, before := int32(0), int32(0), int32(0)
		for _, s := range w.all() {
			applied := targets[s.Name].Replicas
			total += max(applied, s.Actual)
			kept += min(applied, s.Available)
			before += s.keptAvailable()
		}
		if scaledUp := targets["new"].Replicas > r.New.Replicas; scaledUp && total > r.Desired+r.MaxSurge {
			t.Fatalf("seed %d: %d machines, at most %d allowed: %+v", seed, total, r.Desired+r.MaxSurge, r)
		}
		if needed := r.Desired - r.MaxUnavailable; kept < min(needed, before) {
			t.Fatalf("seed %d: %d Machines are still available of %d, want at least %d: %+v", seed, kept, before, needed, r)
		}
		for _, decide := range []func(Rollout) Targets{Rollout.RollingUpdate, Rollout.OnDelete} {
			w := world{Rollout: anyRollout(random)}
			w.run(t, decide)
		}
		for _, proportional := range []bool{true, false} {
			w := world{Rollout: anyRollout(random)}
			w.apply(t, w.Scale(proportional))
		}
	}
}

func TestRollingUpdateEndsWithNewMachinesOnly(t *testing.T) {
	for seed := range uint64(5000) {
		w := world{Rollout: anyRollout(rand.New(rand.NewPCG(seed, 1)))}
		start := w.String()
		w.run(t, Rollout.RollingUpdate)
		for _, s := range w.Old {
			if s.Actual != 0 {
				t.Fatalf("seed %d: from %s to %s", seed, start, w.String())
			}
		}
		if w.New.Available != w.Desired {
			t.Fatalf("seed %d: from %s to %s, desired %d", seed, start, w.String(), w.Desired)
		}
	}
}

func anyRollout(random *rand.Rand) Rollout {
	r := Rollout{Desired: random.Int32N(8), MaxSurge: random.Int32N(4)}
	r.MaxUnavailable = min(random.Int32N(4), r.Desired)
	if r.MaxSurge == 0 && r.MaxUnavailable == 0 {
		r.MaxSurge = 1
	}
	r.New = ptrTo(anySet(random, "new", 9))
	for i, name := range []string{"a", "b", "c"} {
		if random.IntN(3) > 0 {
			r.Old = append(r.Old, anySet(random, name, i))
		}
	}
	return r
}

func anySet(random *rand.Rand, name string, age int) Set {
	s := Set{Name: name, Created: time.Unix(int64(age), 0), Replicas: random.Int32N(6), Actual: random.Int32N(6)}
	s.Available = random.Int32N(s.Actual + 1)
	s.Desired, s.Max = random.Int32N(8), random.Int32N(8)
	return s
}

// Whatever the numbers are, the targets are between zero and what is desired, and a rollout proceeds.
func TestHugeNumbers(t *testing.T) {
	huge := Set{Name: "old", Replicas: math.MaxInt32, Actual: math.MaxInt32, Available: math.MaxInt32, Max: 1}
	second := huge
	second.Name = "older"
	for _, tc := range []struct {
		reason  string
		rollout Rollout
		move    func(Rollout) Targets
		want    Targets
	}{
		{"a huge surge creates all Machines", Rollout{Desired: 3, MaxSurge: math.MaxInt32 - 3, New: &Set{Name: "new"}}, Rollout.RollingUpdate, Targets{"new": {Replicas: 3}}},
		{"the old sets are scaled down", Rollout{Desired: 3, New: &Set{Name: "new", Replicas: 3, Actual: 3, Available: 3}, Old: []Set{huge, second}}, Rollout.RollingUpdate,
			Targets{"new": {Replicas: 3}, "old": {}, "older": {}}},
		{"there are too many old Machines for a new one", Rollout{Desired: 3, New: &Set{Name: "new"}, Old: []Set{huge, second}}, Rollout.OnDelete,
			Targets{"new": {}, "old": {Frozen: true}, "older": {Replicas: 3, Frozen: true}}},
		{"proportions are limited", Rollout{Desired: math.MaxInt32, New: &Set{Name: "new", Replicas: 1}, Old: []Set{huge}}, func(r Rollout) Targets { return r.Scale(true) },
			Targets{"new": {Replicas: 1}, "old": {Replicas: math.MaxInt32 - 1}}},
	} {
		if diff := cmp.Diff(tc.want, tc.move(tc.rollout)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}
