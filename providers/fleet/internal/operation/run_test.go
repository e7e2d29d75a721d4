package operation

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

func TestEnds(t *testing.T) {
	const pending, running, failed = fleetv1.OperationPhasePending, fleetv1.OperationPhaseRunning, fleetv1.OperationPhaseFailed
	took := func(out Outcome, err error) func(*Run) step.Result {
		return func(r *Run) step.Result {
			result, _ := r.conclude(t.Context(), r.Begin("Fence"), out, err)
			return result
		}
	}
	for _, tt := range []struct {
		reason              string
		confirmed, underway bool
		finishing           string
		do                  func(*Run) step.Result
		phase               fleetv1.OperationPhase
		want, mark          string
	}{
		{reason: "what is refused is checked again until it is confirmed", do: func(r *Run) step.Result { return r.Refuse("no quorum") },
			phase: pending, want: "False Refused no quorum. This is checked again every 30s"},
		{reason: "a confirmed operation must not begin by surprise", confirmed: true, do: func(r *Run) step.Result { return r.Refuse("no quorum") },
			phase: failed, want: "False Refused no quorum. Nothing was changed, and it does not begin later: create another one to try again"},
		{reason: "what has begun goes on", confirmed: true, underway: true, do: func(r *Run) step.Result { return r.Refuse("paused") },
			phase: running, want: "False Waiting paused"},
		{reason: "a step that is refused names itself once it has begun", confirmed: true, underway: true, do: took(Outcome{}, Refusal("paused")),
			phase: running, want: "False Waiting Step Fence: paused"},
		{reason: "a step that waits", underway: true, do: took(Waits("Machines to go"), nil), phase: running,
			want: "False Waiting Step Fence: waiting for Machines to go", mark: "Machines to go"},
		{reason: "a step that fails is tried again", underway: true, do: took(Outcome{}, errors.New("timeout")), phase: running,
			want: "False Waiting Step Fence: timeout", mark: "timeout"},
		{reason: "a step that is complete", underway: true, do: took(Done("all are gone"), nil), phase: running,
			want: "False Running Step Fence is complete: all are gone", mark: "all are gone"},
		{reason: "a step that cannot succeed", underway: true, do: took(Outcome{}, Failure("no survivor")), phase: failed,
			want: "False Failed no survivor", mark: "no survivor"},
		{reason: "a pause, while it is being deleted", underway: true, finishing: "It is completed first.",
			do:    func(r *Run) step.Result { return r.Paused(Poll, "Paused before Fence") },
			phase: running, want: "False Paused It is completed first. Paused before Fence. Set spec.paused to false to go on"},
		{reason: "success", underway: true, do: func(r *Run) step.Result { return r.Succeed("") }, phase: fleetv1.OperationPhaseCompleted,
			want: "True Completed "},
		{reason: "nothing was found out", underway: true, do: func(r *Run) step.Result { r.Unknown(); return step.Stop() }, phase: running,
			want: "False Waiting before"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			o := &fleetv1.ControlPlaneRestore{}
			o.Status.Phase = pending
			if tt.underway {
				o.Status.Phase = running
			}
			o.Status.Conditions = []metav1.Condition{report.False(fleetv1.OperationCompletedCondition, fleetv1.OperationWaitingReason, "before")}
			r := &Run{
				Before: o, Clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)), Phase: &o.Status.Phase,
				CompletionTime: &o.Status.CompletionTime, Marks: (*Steps)(&o.Status.Steps), Confirmed: tt.confirmed,
				Underway: func() bool { return tt.underway }, Finishing: tt.finishing,
			}
			tt.do(r)
			c := r.Report()[0]
			mark := ""
			if m := r.Marks.Find("Fence"); m != nil {
				mark = m.Message
			}
			got := []string{string(c.Status) + " " + c.Reason + " " + c.Message, string(o.Status.Phase), mark}
			if diff := cmp.Diff([]string{tt.want, string(tt.phase), tt.mark}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if ended := Ended(o.Status.Phase); ended != (o.Status.CompletionTime != nil) {
				t.Errorf("ended %t, at %v", ended, o.Status.CompletionTime)
			}
		})
	}
}

func TestNameOf(t *testing.T) {
	for mark, want := range map[string]string{"Hold": "hold", "ForceNewCluster": "force-new-cluster"} {
		if got := nameOf(mark); got != want {
			t.Errorf("the step of %s is %s, want %s", mark, got, want)
		}
	}
}
