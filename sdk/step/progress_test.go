package step

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

const (
	boot  = clusterv1.BootstrapReadyV1Beta1Condition
	infra = clusterv1.InfrastructureReadyV1Beta1Condition
)

var (
	fresh  = now.Add(-progressDelay / 2)
	broken = condition.False(boot, clusterv1.ConditionSeverityError, "Broken", "")
)

func waitingFor(reason string) clusterv1.Condition {
	return condition.False(boot, clusterv1.ConditionSeverityInfo, reason, "")
}

// at is a condition with the time of its last transition.
func at(when time.Time, c clusterv1.Condition) clusterv1.Condition {
	c.LastTransitionTime = metav1.NewTime(when)
	return c
}

// write is a change of a Machine's status, and for how long it may wait.
type write struct {
	reason string
	// created is when the Machine was; zero: long ago.
	created       time.Time
	before, after clusterv1.MachineStatus
	want          time.Duration
	onlyFirst     bool
}

func (c write) test(t *testing.T) {
	progress := &Progress{First: []string{"phase"}, FirstTrue: []clusterv1.ConditionType{infra}, OnlyFirst: c.onlyFirst, Immediate: []string{"Read"}}
	before, after := &clusterv1.Machine{Status: c.before}, &clusterv1.Machine{Status: c.after}
	before.CreationTimestamp = metav1.NewTime(c.created)
	patch, err := statusDifference(before, after)
	if err != nil {
		t.Fatal(err)
	}
	if got := progress.wait(patch, before, after, now, (&held{}).progress()); got != c.want {
		t.Errorf("waits %s, want %s: %s", got, c.want, c.reason)
	}
}

func TestWhichFirstStatusWaits(t *testing.T) {
	for name, c := range map[string]write{
		"First": {
			reason: "what a new object waits for is often over before it is written", created: now,
			after: clusterv1.MachineStatus{Phase: "Pending", ObservedGeneration: 1, Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{waitingFor("Data")}}}},
			want:  progressDelay,
		},
		"FirstDeclaredTrue": {
			reason: "FirstTrue declares that no controller waits for this condition of a new object, nor for Ready", created: fresh,
			after: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{condition.True(clusterv1.ReadyV1Beta1Condition), condition.True(infra)}}}},
			want:  progressDelay / 2,
		},
		"FirstTrue": {
			reason: "other controllers may wait for a condition to become True", created: now,
			after: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{condition.True(boot)}}}},
		},
		"FirstField": {
			reason: "a field that is not declared is written immediately", created: now,
			after: clusterv1.MachineStatus{Phase: "Provisioned", Initialization: clusterv1.MachineInitializationStatus{InfrastructureProvisioned: ptr.To(true)}},
		},
		"FirstError": {
			reason: "an error is written immediately", created: now,
			after: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{broken}}}},
		},
		"FirstWithImmediateReason": {
			reason: "code reads this reason", created: now,
			after: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{waitingFor("Read")}}}},
		},
		"FirstOfAnOldObject": {
			reason: "an object that is not new gets its first status immediately", created: now.Add(-progressDelay),
			after: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{waitingFor("Data")}}}},
		},
		"ClockAhead": {
			reason: "a clock that is fast must not prolong the delay", created: now.Add(time.Minute),
			after: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{waitingFor("Data")}}}},
		},
	} {
		t.Run(name, c.test)
	}
}

func TestWhichLaterStatusWaits(t *testing.T) {
	for name, c := range map[string]write{
		"OtherReason": {
			reason: "a reason that was written a moment ago may change again",
			before: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{at(fresh, waitingFor("Data"))}}}},
			after:  clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{waitingFor("ControlPlane")}}}},
			want:   progressDelay / 2,
		},
		"ImmediateReason": {
			reason: "code reads this reason",
			before: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{at(fresh, waitingFor("Data"))}}}},
			after:  clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{waitingFor("Read")}}}},
		},
		"OldReason": {
			reason: "a reason that was set long ago is replaced immediately",
			before: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{at(now.Add(-time.Minute), waitingFor("Data"))}}}},
			after:  clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{waitingFor("ControlPlane")}}}},
		},
		"DeclaredFieldLater": {
			reason: "code reads fields: once there is a status none of them waits", created: now,
			before: clusterv1.MachineStatus{Phase: "Pending", Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{at(now, waitingFor("Data"))}}}},
			after:  clusterv1.MachineStatus{Phase: "Provisioning", Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{waitingFor("ControlPlane")}}}},
		},
		"GenerationLater": {
			reason: "code waits for the generation of a change to be observed", created: now,
			before: clusterv1.MachineStatus{ObservedGeneration: 1, Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{at(now, waitingFor("Data"))}}}},
			after:  clusterv1.MachineStatus{ObservedGeneration: 2, Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{at(now, waitingFor("Data"))}}}},
		},
		"DeclaredTrueLater": {
			reason: "once there is a status, a condition that becomes True is not delayed", created: now,
			before: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{at(now, waitingFor("Data"))}}}},
			after:  clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{at(now, waitingFor("Data")), condition.True(infra)}}}},
		},
		"NewConditionLater": {
			reason: "controllers distinguish a False condition from an absent one", created: now,
			before: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{condition.True(infra)}}}},
			after:  clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{condition.True(infra), waitingFor("Data")}}}},
		},
		"Worse": {
			reason: "a condition that is no longer True is written immediately", created: now,
			before: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{at(now, condition.True(infra))}}}},
			after:  clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{condition.Unknown(infra, "Lost", "")}}}},
		},
		"ErrorLater": {
			reason: "users may have to act on an error", created: now,
			before: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{at(now, waitingFor("Data"))}}}},
			after:  clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{broken}}}},
		},
		"ErrorOver": {
			reason: "and may wait for it to end", created: now,
			before: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{at(now, broken)}}}},
			after:  clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{waitingFor("Data")}}}},
		},
		"Gone": {
			reason: "a condition that is removed is more than another reason", created: now,
			before: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{at(now, waitingFor("Data"))}}}},
		},
	} {
		t.Run(name, c.test)
	}
}

// TestOnlyTheFirstStatusWaits: OnlyFirst does not change what waits of the first status, and nothing waits later.
func TestOnlyTheFirstStatusWaits(t *testing.T) {
	for name, c := range map[string]write{
		"First": {
			reason: "what a new object waits for is often over before it is written", created: now,
			after: clusterv1.MachineStatus{Phase: "Pending", Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{waitingFor("Data")}}}},
			want:  progressDelay,
		},
		"FirstField": {
			reason: "a field that is not declared is written immediately", created: now,
			after: clusterv1.MachineStatus{Initialization: clusterv1.MachineInitializationStatus{InfrastructureProvisioned: ptr.To(true)}, Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{waitingFor("Data")}}}},
		},
		"OtherReason": {
			reason: "code may read reasons", created: now,
			before: clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{at(fresh, waitingFor("Data"))}}}},
			after:  clusterv1.MachineStatus{Deprecated: &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{waitingFor("ControlPlane")}}}},
		},
	} {
		c.onlyFirst = true
		t.Run(name, c.test)
	}
}

// patient is a world whose runner lets progress wait, and its clock. The Machine is new.
func patient(t *testing.T, do func(context.Context, *clusterv1.Machine) (Result, error)) (*world, *testclock.FakePassiveClock) {
	t.Helper()
	m := machine()
	m.CreationTimestamp = metav1.NewTime(now)
	w := newWorld(t, do, m)
	clock := testclock.NewFakePassiveClock(now)
	w.runner.Clock, w.runner.progress = clock, &Progress{First: []string{"phase"}}
	return w, clock
}

func (w *world) mustReconcile(t *testing.T) time.Duration {
	t.Helper()
	result, err := w.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

func TestProgressIsWrittenInTheEnd(t *testing.T) {
	w, clock := patient(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		condition.Set(m, waitingFor("Data"))
		if m.Status.Phase == "" {
			m.Status.Phase = "Pending"
			Transition(ctx, "Pending", "it is Pending")
			Event(ctx, "Tried", "it was tried")
		}
		return WaitAtMost(time.Hour, "data"), nil
	})
	if after := w.mustReconcile(t); after != progressDelay || len(w.writes) != 0 {
		t.Fatalf("requeued after %s, wrote %q; want %s, nothing", after, w.writes, progressDelay)
	}
	if e := <-w.events.Events; !strings.Contains(e, "Tried") || len(w.events.Events) != 0 {
		t.Fatalf("events are sent immediately, except those of a delayed status: %s", e)
	}
	clock.SetTime(now.Add(progressDelay / 2))
	if after := w.mustReconcile(t); after != progressDelay/2 || len(w.writes) != 0 {
		t.Fatalf("requeued after %s, wrote %q; another event must not prolong the delay", after, w.writes)
	}
	<-w.events.Events
	clock.SetTime(now.Add(progressDelay))
	if after := w.mustReconcile(t); after != time.Hour || !cmp.Equal(w.writes, []string{"status"}) {
		t.Fatalf("requeued after %s, wrote %q; want the status, and the deadline of the step", after, w.writes)
	}
	if e := <-w.events.Events; !strings.Contains(e, "Pending") {
		t.Errorf("the event goes with the status that records it: %s", e)
	}
	clock.SetTime(now.Add(time.Minute))
	if after := w.mustReconcile(t); after != time.Hour || len(w.writes) != 1 {
		t.Errorf("requeued after %s, wrote %q; nothing is left to write", after, w.writes)
	}
}

// TestProgressIsOvertaken: a second process, without the state of the first, writes the same.
func TestProgressIsOvertaken(t *testing.T) {
	ready := false
	w, _ := patient(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		if len(m.GetV1Beta1Conditions()) != 0 {
			t.Errorf("a reconcile works on conditions that were never written: %v", m.GetV1Beta1Conditions())
		}
		if !ready {
			condition.Set(m, waitingFor("Data"))
			Transition(ctx, "Waiting", "it waits")
			return Wait("data"), nil
		}
		condition.Set(m, condition.True(boot))
		return Done(), nil
	})
	w.mustReconcile(t)
	ready = true
	if after := w.mustReconcile(t); after != 0 || !cmp.Equal(w.writes, []string{"status"}) {
		t.Errorf("requeued after %s, wrote %q; want one write, immediately", after, w.writes)
	}
	if m := w.machine(t); !condition.IsTrue(m, boot) || len(w.events.Events) != 0 {
		t.Errorf("want it ready, without an event for the delayed status: %v, %d events", m.GetV1Beta1Conditions(), len(w.events.Events))
	}
}

func TestErrorsAndDeletionsDoNotWait(t *testing.T) {
	stated := func(err error) func(context.Context, *clusterv1.Machine) (Result, error) {
		return func(_ context.Context, m *clusterv1.Machine) (Result, error) {
			condition.Set(m, waitingFor("Data"))
			return Done(), err
		}
	}
	w, _ := patient(t, stated(errors.New("the provider is away")))
	if _, err := w.reconcile(t); err == nil || len(w.writes) != 1 {
		t.Errorf("err = %v, wrote %q; the status of a failed reconcile must not be delayed", err, w.writes)
	}
	w, _ = patient(t, stated(nil))
	leaving := w.machine(t)
	leaving.Finalizers = []string{clusterv1.MachineFinalizer}
	if err := w.Update(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), leaving, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	if w.mustReconcile(t); len(w.writes) != 1 {
		t.Errorf("wrote %q; the status of an object that is being deleted does not wait", w.writes)
	}
}
