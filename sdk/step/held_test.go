package step

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// TestHeldReports: what only people read goes with the next write that code waits for.
func TestHeldReports(t *testing.T) {
	var found []metav1.Condition
	w := newWorld(t, nil, machine())
	clock := testclock.NewFakePassiveClock(now)
	w.runner.Clock, w.runner.reports, w.runner.settle = clock, true, Settle{First: true}
	w.runner.reconcile = Controller[*clusterv1.Machine, *clusterv1.Machine]{
		Scope: Self[*clusterv1.Machine],
		Steps: []Step[*clusterv1.Machine]{Do("x", func(context.Context, *clusterv1.Machine) (Result, error) { return Done(), nil })},
		Reports: func(*clusterv1.Machine) []metav1.Condition {
			return found
		},
	}.reconcile
	for _, tt := range []struct {
		reason string
		found  metav1.Condition
		at     time.Duration
		writes int
		after  time.Duration
	}{
		{"first reports are held", report.False("Ready", "NotReady", "0 of 3"), -time.Minute, 0, heldFor},
		{"and written at the end", report.False("Ready", "NotReady", "1 of 3"), heldFor - time.Minute, 1, 0},
		{"another message is held", report.False("Ready", "NotReady", "2 of 3"), time.Minute, 1, heldFor},
		{"time runs from the first change", report.Unknown("Ready", "ReadyUnknown", "lost"), time.Minute + 4*time.Second, 1, heldFor - 4*time.Second},
		{"at the end it is written", report.Unknown("Ready", "ReadyUnknown", "lost"), time.Minute + heldFor, 2, 0},
		{"a change that is undone", report.False("Ready", "NotReady", ""), 2 * time.Minute, 2, heldFor},
		{"needs no write", report.Unknown("Ready", "ReadyUnknown", "lost"), 2*time.Minute + time.Second, 2, 0},
		{"the time begins anew", report.False("Ready", "NotReady", ""), 3 * time.Minute, 2, heldFor},
		{"True is written at once", report.True("Ready", "Ready", ""), 3*time.Minute + time.Second, 3, 0},
		{"so is the end of True", report.False("Ready", "NotReady", ""), 4 * time.Minute, 4, 0},
	} {
		clock.SetTime(now.Add(tt.at))
		found = []metav1.Condition{tt.found}
		if after := w.mustReconcile(t); after != tt.after || len(w.writes) != tt.writes {
			t.Errorf("%s: requeued after %s with %d writes, want %s and %d", tt.reason, after, len(w.writes), tt.after, tt.writes)
		}
		if m := w.machine(t); (m.Status.ObservedGeneration != 0) != (report.Get(m, "Ready") != nil) {
			t.Errorf("%s: generation %d is observed, with the conditions %v", tt.reason, m.Status.ObservedGeneration, m.GetConditions())
		}
	}
	c := report.Get(w.machine(t), "Ready")
	want := report.False("Ready", "NotReady", "")
	want.ObservedGeneration, want.LastTransitionTime = 3, metav1.NewTime(now.Add(4*time.Minute))
	if diff := cmp.Diff(&want, c, cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })); diff != "" {
		t.Errorf("Ready: -want +got:\n%s", diff)
	}
	if !report.IsFalse(w.machine(t), "Paused") {
		t.Error("an object with reports has Paused, too")
	}
}

// TestReportsRepeatReady: Reports finds the conditions that are derived, so that it can return the same as those with severities.
func TestReportsRepeatReady(t *testing.T) {
	w := newWorld(t, nil, machine())
	kind := condition.Kind{Ready: []clusterv1.ConditionType{clusterv1.BootstrapReadyV1Beta1Condition}}
	w.runner.reports, w.runner.conditions = true, kind
	w.runner.reconcile = Controller[*clusterv1.Machine, *clusterv1.Machine]{
		Scope: Self[*clusterv1.Machine],
		Steps: []Step[*clusterv1.Machine]{Do("x", func(context.Context, *clusterv1.Machine) (Result, error) {
			return Wait("it").Because("Waiting"), nil
		}).Sets(clusterv1.BootstrapReadyV1Beta1Condition)},
		Conditions: kind,
		Reports: func(m *clusterv1.Machine) []metav1.Condition {
			return condition.Metav1(m.GetV1Beta1Conditions(), m.Generation)
		},
	}.reconcile
	w.mustReconcile(t)
	m := w.machine(t)
	if ready := report.Get(m, "Ready"); ready == nil || ready.Reason != "Waiting" || ready.Message != "Waiting for it" {
		t.Errorf("the conditions are %v, and with severities %v", m.GetConditions(), m.GetV1Beta1Conditions())
	}
	w.mustReconcile(t)
	if len(w.writes) != 1 {
		t.Errorf("an equal result is written: %v", w.writes)
	}
}

// TestHeldByMany: the more objects change at the same time, the longer their reports are held back, up to a minute.
func TestHeldByMany(t *testing.T) {
	var h held
	key := func(i int) types.NamespacedName { return types.NamespacedName{Name: strconv.Itoa(i)} }
	for i := range 11 {
		h.left(key(i), now, heldFor)
	}
	for _, tt := range []struct {
		reason     string
		objects    int
		most, want time.Duration
	}{
		{"ten others are held", 11, heldFor, 15 * time.Second},
		{"a short time stays as it is", 11, time.Second, time.Second},
		{"there is a limit", 500, heldFor, time.Minute},
		{"it is as before when no other is held", 1, heldFor, heldFor},
	} {
		for i := range 500 {
			if i < tt.objects {
				h.left(key(i), now, tt.most)
			} else {
				h.forget(key(i))
			}
		}
		if left := h.left(key(0), now, tt.most); left != tt.want {
			t.Errorf("%s: held for %s, want %s", tt.reason, left, tt.want)
		}
	}
	if got := h.progress(); got != progressDelay+heldEach {
		t.Errorf("progress is delayed by %s while one object is held", got)
	}
	for i := range 500 {
		h.left(key(i), now, heldFor)
	}
	if got := h.progress(); got != progressMost {
		t.Errorf("progress is delayed by %s while all are held", got)
	}
}

// TestSettle: changes that come at about the same time are one write, also of conditions that become True.
func TestSettle(t *testing.T) {
	var found []metav1.Condition
	w := newWorld(t, nil, machine())
	clock := testclock.NewFakePassiveClock(now)
	w.runner.Clock, w.runner.reports, w.runner.settle = clock, true, Settle{For: time.Second, Conditions: []string{"Ready"}, First: true}
	w.runner.reconcile = Controller[*clusterv1.Machine, *clusterv1.Machine]{
		Scope:   Self[*clusterv1.Machine],
		Steps:   []Step[*clusterv1.Machine]{Do("x", func(context.Context, *clusterv1.Machine) (Result, error) { return Done(), nil })},
		Reports: func(*clusterv1.Machine) []metav1.Condition { return found },
	}.reconcile
	for _, tt := range []struct {
		reason string
		found  metav1.Condition
		at     time.Duration
		writes int
		after  time.Duration
	}{
		{"a first True is written at once, and takes the others along", report.True("Ready", "Ready", ""), -time.Minute, 1, 0},
		{"the end of True settles", report.False("Ready", "NotReady", ""), 0, 1, time.Second},
		{"and is written", report.False("Ready", "NotReady", ""), time.Second, 2, 0},
		{"a condition that becomes True settles", report.True("Ready", "Ready", ""), time.Minute, 2, time.Second},
		{"the time runs from the first change", report.True("Ready", "Ready", "all"), time.Minute + time.Second/4, 2, 3 * time.Second / 4},
		{"both are one write", report.True("Ready", "Ready", "all"), time.Minute + time.Second, 3, 0},
		{"the time begins anew", report.False("Ready", "NotReady", ""), 2 * time.Minute, 3, time.Second},
		{"it is written at the end", report.False("Ready", "NotReady", ""), 2*time.Minute + time.Second, 4, 0},
		{"another message is held longer", report.False("Ready", "NotReady", "x"), time.Hour, 4, heldFor},
		{"but not once a condition becomes True", report.True("Ready", "Ready", ""), time.Hour + 2*time.Second, 5, 0},
		{"others may become True later", report.True("UpToDate", "UpToDate", ""), 2 * time.Hour, 5, heldFor},
	} {
		clock.SetTime(now.Add(tt.at))
		found = []metav1.Condition{tt.found}
		if after := w.mustReconcile(t); after != tt.after || len(w.writes) != tt.writes {
			t.Errorf("%s: requeued after %s with %d writes, want %s and %d", tt.reason, after, len(w.writes), tt.after, tt.writes)
		}
	}
}

// TestReportsOfOthersAreKept: several controllers report about a Machine, in one list.
func TestReportsOfOthersAreKept(t *testing.T) {
	w := newWorld(t, nil, machine())
	w.runner.reports = true
	w.runner.reconcile = func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		other := w.machine(t)
		report.Set(other, 1, now, report.True("HealthCheckSucceeded", "HealthCheckSucceeded", ""))
		if err := w.Status().Update(ctx, other); err != nil {
			return Done(), err
		}
		return Done(), nil
	}
	steps := w.runner.reconcile
	w.runner.reconcile = Controller[*clusterv1.Machine, *clusterv1.Machine]{
		Scope: Self[*clusterv1.Machine],
		Steps: []Step[*clusterv1.Machine]{Do("x", func(ctx context.Context, m *clusterv1.Machine) (Result, error) { return steps(ctx, m) })},
		Reports: func(*clusterv1.Machine) []metav1.Condition {
			return []metav1.Condition{report.True("Ready", "Ready", "")}
		},
	}.reconcile
	w.mustReconcile(t)
	if m := w.machine(t); !report.IsTrue(m, "Ready") || !report.IsTrue(m, "HealthCheckSucceeded") {
		t.Errorf("a condition is lost: %v", m.GetConditions())
	}
}

func TestPausedIsReportedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		reason      string
		byCluster   bool
		annotations map[string]string
		want        string
	}{
		"Cluster":    {"a paused Cluster pauses its objects", true, nil, "Cluster spec.paused is set to true"},
		"Annotation": {"an object is paused by itself", false, map[string]string{clusterv1.PausedAnnotation: ""}, "Machine has the cluster.x-k8s.io/paused annotation"},
		"Both": {"both are named", true, map[string]string{clusterv1.PausedAnnotation: ""},
			"Cluster spec.paused is set to true, Machine has the cluster.x-k8s.io/paused annotation"},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine()
			m.Annotations = c.annotations
			w := newWorld(t, func(context.Context, *clusterv1.Machine) (Result, error) {
				t.Error("a paused object must not be reconciled")
				return Done(), nil
			}, m)
			w.runner.reports = true
			w.runner.whilePaused = func(_ *clusterv1.Machine, paused metav1.Condition) []metav1.Condition {
				return []metav1.Condition{report.False("TopologyReconciled", paused.Reason, "%s", paused.Message)}
			}
			w.runner.pausedBy = func(context.Context, *clusterv1.Machine) (bool, error) { return c.byCluster, nil }
			w.mustReconcile(t)
			w.mustReconcile(t)
			got := report.Get(w.machine(t), "Paused")
			if other := report.Get(w.machine(t), "TopologyReconciled"); got == nil || other == nil || other.Message != got.Message {
				t.Errorf("%s: further conditions are written with it: %v", c.reason, other)
			}
			if got == nil || got.Message != c.want || len(w.writes) != 1 {
				t.Errorf("%s: %v, want %q, in one write: %q", c.reason, got, c.want, w.writes)
			}
			if stored := w.machine(t); stored.Status.ObservedGeneration != 0 || condition.Has(stored, clusterv1.ReadyV1Beta1Condition) {
				t.Errorf("a paused object gets nothing else: %v", stored.Status)
			}
		})
	}
}

// TestHolds: only what nothing waits for is held back.
func TestHeldBack(t *testing.T) {
	with := func(c metav1.Condition) *clusterv1.Machine {
		m := machine()
		m.SetConditions([]metav1.Condition{c})
		return m
	}
	no, stillNo, yes := with(report.False("Ready", "NotReady", "")), with(report.False("Ready", "NotReady", "x")), with(report.True("Ready", "Ready", ""))
	deleted := with(report.True("Ready", "Ready", ""))
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	none, some := Settle{}, Settle{For: time.Second, Conditions: []string{"Ready"}, First: true}
	status := func(fields ...string) statusPatch {
		patch := map[string]any{}
		for _, field := range fields {
			patch[field] = nil
		}
		return statusPatch{document{"status": patch}, true}
	}
	conditions, counters := status("conditions"), status("conditions", "workers")
	withSpec := statusPatch{document{"spec": nil, "status": conditions.status()}, true}
	older := statusPatch{document{"status": map[string]any{
		"conditions": nil, "deprecated": map[string]any{"v1beta1": map[string]any{"conditions": nil}},
	}}, true}
	for _, tt := range []struct {
		reason string
		patch  statusPatch
		after  *clusterv1.Machine
		settle Settle
		want   time.Duration
	}{
		{"another message", conditions, stillNo, none, heldFor},
		{"counters are waited for, if they do not settle", counters, stillNo, none, 0},
		{"otherwise they are not", counters, stillNo, some, heldFor},
		{"a condition becomes True", conditions, yes, none, 0},
		{"and settles", counters, yes, some, time.Second},
		{"in deletion, nothing is urgent", counters, deleted, some, heldFor},
		{"code reads other fields", status("conditions", "phase"), stillNo, some, 0},
		{"and conditions with severities", older, stillNo, some, 0},
		{"and the spec", withSpec, stillNo, some, 0},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if got := heldBack(tt.patch, no, tt.after, tt.settle); got != tt.want {
				t.Errorf("held for %s, want %s", got, tt.want)
			}
		})
	}
}
