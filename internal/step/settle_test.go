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
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
)

const (
	boot  = clusterv1.BootstrapReadyCondition
	infra = clusterv1.InfrastructureReadyCondition
)

func waitingFor(reason string) clusterv1.Condition {
	return condition.False(boot, clusterv1.ConditionSeverityInfo, reason, "")
}

func TestWhatCountsAsProgress(t *testing.T) {
	arrivals := &Progress{Fields: []string{"phase"}, Conditions: []clusterv1.ConditionType{infra}}
	broken := condition.False(boot, clusterv1.ConditionSeverityError, "Broken", "")
	for name, c := range map[string]struct {
		reason        string
		before, after clusterv1.MachineStatus
		want          bool
	}{
		"FirstReason": {
			reason: "what something new waits for is overtaken soon",
			after:  clusterv1.MachineStatus{Conditions: clusterv1.Conditions{waitingFor("Data")}},
			want:   true,
		},
		"OtherReason": {
			reason: "it still waits, for something else",
			before: clusterv1.MachineStatus{Conditions: clusterv1.Conditions{waitingFor("Data")}},
			after:  clusterv1.MachineStatus{Conditions: clusterv1.Conditions{waitingFor("ControlPlane")}},
			want:   true,
		},
		"Arrived": {
			reason: "others wait for a condition to become True, unless it is declared that none does",
			before: clusterv1.MachineStatus{Conditions: clusterv1.Conditions{waitingFor("Data")}},
			after:  clusterv1.MachineStatus{Conditions: clusterv1.Conditions{condition.True(boot)}},
		},
		"DeclaredArrival": {
			reason: "nobody waits for this one, nor for Ready, which follows from it",
			after:  clusterv1.MachineStatus{Conditions: clusterv1.Conditions{condition.True(clusterv1.ReadyCondition), condition.True(infra)}},
			want:   true,
		},
		"Worse": {
			reason: "what was True and is not any more is told at once",
			before: clusterv1.MachineStatus{Conditions: clusterv1.Conditions{condition.True(infra)}},
			after:  clusterv1.MachineStatus{Conditions: clusterv1.Conditions{condition.Unknown(infra, "Lost", "")}},
		},
		"Error": {
			reason: "an error may be what somebody has to do something about",
			after:  clusterv1.MachineStatus{Conditions: clusterv1.Conditions{broken}},
		},
		"ErrorOver": {
			reason: "and so may be its end",
			before: clusterv1.MachineStatus{Conditions: clusterv1.Conditions{broken}},
			after:  clusterv1.MachineStatus{Conditions: clusterv1.Conditions{waitingFor("Data")}},
		},
		"Gone": {
			reason: "a condition that went away is more than progress",
			before: clusterv1.MachineStatus{Conditions: clusterv1.Conditions{waitingFor("Data")}},
		},
		"Fields": {
			reason: "declared fields, and the generation, are progress",
			before: clusterv1.MachineStatus{Phase: "Pending"},
			after:  clusterv1.MachineStatus{Phase: "Provisioning", ObservedGeneration: 2},
			want:   true,
		},
		"OtherFields": {
			reason: "any other field may be waited for",
			after:  clusterv1.MachineStatus{Phase: "Running", InfrastructureReady: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := &clusterv1.Machine{Status: c.before}, &clusterv1.Machine{Status: c.after}
			patch, err := statusDifference(before, after)
			if err != nil {
				t.Fatal(err)
			}
			if got := arrivals.covers(patch, c.before.Conditions, c.after.Conditions); got != c.want {
				t.Errorf("progress = %t, want %t: %s", got, c.want, c.reason)
			}
		})
	}
}

// patient is a world whose runner lets progress wait, and its clock.
func patient(t *testing.T, do func(context.Context, *clusterv1.Machine) (Result, error), objects ...client.Object) (*world, *testclock.FakePassiveClock) {
	w := newWorld(t, do, objects...)
	at := testclock.NewFakePassiveClock(now)
	w.runner.Clock, w.runner.Progress = at, &Progress{Fields: []string{"phase"}}
	return w, at
}

func (w *world) mustReconcile(t *testing.T) time.Duration {
	t.Helper()
	result, err := w.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

func TestProgressWaitsAndIsToldInTheEnd(t *testing.T) {
	w, at := patient(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		condition.Set(m, waitingFor("Data"))
		if m.Status.Phase == "" {
			m.Status.Phase = "Pending"
			Transition(ctx, "Pending", "it is Pending")
			Event(ctx, "Tried", "it was tried")
		}
		return WaitAtMost(time.Hour, "data"), nil
	}, machine())
	if after := w.mustReconcile(t); after != settleTime || len(w.writes) != 0 {
		t.Fatalf("comes back after %s, wrote %q; want %s, nothing", after, w.writes, settleTime)
	}
	if e := <-w.events.Events; !strings.Contains(e, "Tried") || len(w.events.Events) != 0 {
		t.Fatalf("what was done is told at once, what the status does not say yet is not: %s", e)
	}
	at.SetTime(now.Add(settleTime / 2))
	if after := w.mustReconcile(t); after != settleTime/2 || len(w.writes) != 0 {
		t.Fatalf("comes back after %s, wrote %q; another event must not prolong the wait", after, w.writes)
	}
	<-w.events.Events
	at.SetTime(now.Add(settleTime))
	if after := w.mustReconcile(t); after != time.Hour || !cmp.Equal(w.writes, []string{"status"}) {
		t.Fatalf("comes back after %s, wrote %q; want the status, and the deadline of the step", after, w.writes)
	}
	if e := <-w.events.Events; !strings.Contains(e, "Pending") {
		t.Errorf("the event goes with the status that it tells of: %s", e)
	}
	if since := condition.Get(w.machine(t), boot).LastTransitionTime; !since.Equal(new(metav1.NewTime(now))) {
		t.Errorf("it waits for data since %s, said %s", now, since)
	}
	at.SetTime(now.Add(time.Minute))
	if after := w.mustReconcile(t); after != time.Hour || len(w.writes) != 1 {
		t.Errorf("comes back after %s, wrote %q; nothing is left to tell", after, w.writes)
	}
}

func TestProgressIsOvertaken(t *testing.T) {
	ready := false
	w, _ := patient(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		if !ready {
			condition.Set(m, waitingFor("Data"))
			Transition(ctx, "Waiting", "it waits")
			return Wait("data"), nil
		}
		if !condition.IsFalse(m, boot) {
			t.Error("what an earlier reconcile stated is lost because it was not written")
		}
		condition.Set(m, condition.True(boot))
		return Done(), nil
	}, machine())
	w.mustReconcile(t)
	ready = true
	if after := w.mustReconcile(t); after != 0 || !cmp.Equal(w.writes, []string{"status"}) {
		t.Errorf("comes back after %s, wrote %q; want one write, at once", after, w.writes)
	}
	if m := w.machine(t); !condition.IsTrue(m, boot) || len(w.events.Events) != 0 {
		t.Errorf("it is ready, and nobody hears of what was overtaken: %v, %d events", m.Status.Conditions, len(w.events.Events))
	}
}

func TestWhatIsNotProgressIsToldAtOnce(t *testing.T) {
	stated := func(err error) func(context.Context, *clusterv1.Machine) (Result, error) {
		return func(_ context.Context, m *clusterv1.Machine) (Result, error) {
			condition.Set(m, waitingFor("Data"))
			return Done(), err
		}
	}
	w, _ := patient(t, stated(errors.New("the provider is away")), machine())
	if _, err := w.reconcile(t); err == nil || len(w.writes) != 1 {
		t.Errorf("err = %v, wrote %q; what a failed reconcile states does not wait", err, w.writes)
	}
	leaving := machine()
	leaving.Finalizers, leaving.DeletionTimestamp = []string{clusterv1.MachineFinalizer}, new(metav1.NewTime(now))
	w, _ = patient(t, stated(nil), leaving)
	if w.mustReconcile(t); len(w.writes) != 1 {
		t.Errorf("wrote %q; what is said of an object that goes does not wait", w.writes)
	}
}

func TestProgressIsOfOneObject(t *testing.T) {
	first := machine()
	first.UID = "first"
	said := false
	w, _ := patient(t, func(_ context.Context, m *clusterv1.Machine) (Result, error) {
		if !said {
			condition.Set(m, waitingFor("Data"))
		}
		said = true
		return Done(), nil
	}, first)
	w.mustReconcile(t)
	if err := w.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	second := machine()
	second.UID = "second"
	if err := w.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	w.runner.Progress = nil
	w.mustReconcile(t)
	if m := w.machine(t); condition.Has(m, boot) {
		t.Errorf("an object is told what was said of another one of its name: %v", m.Status.Conditions)
	}
}
