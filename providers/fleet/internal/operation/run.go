package operation

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// Poll is how often a step looks whether what it waits for has happened. Machines and their infrastructure are not cached in this
	// manager: operations are rare, and Machines many.
	Poll = time.Second
	// Retry is the pause after an error.
	Retry = 5 * time.Second
	// RefusedRetry is how often an operation is considered again that is refused and not confirmed: that may mean to read an archive, or to
	// ask machines.
	RefusedRetry = 30 * time.Second
	// maxStep is the longest message of a step, maxCondition that of a condition: it may have what users should know.
	maxStep, maxCondition = 1024, 4096
)

// Brief returns a message that fits into the status.
func Brief(message string) string { return condition.Truncate(strings.TrimSpace(message), maxStep) }

// Run is one reconcile of an operation. Its fields are set by the scope of the controller, before the first step. What its methods find is
// in the status and in the condition Completed at the end; each of them replaces what was found before.
type Run struct {
	// Before are the conditions as they were read.
	Before report.Getter
	Clock  clock.PassiveClock
	// Phase, CompletionTime and Marks are those of the status.
	Phase          *fleetv1.OperationPhase
	CompletionTime **metav1.Time
	Marks          Marks
	// Confirmed is whether users have confirmed the operation.
	Confirmed bool
	// Underway reports whether the operation has begun, so that what would have refused it is waited for.
	Underway func() bool
	// Finishing says why an operation is completed before it is deleted; empty if that is not so. It precedes what the condition says.
	Finishing string

	reason, message string
}

// run makes the embedded Run of a scope available to Step.
func (r *Run) run() *Run { return r }

func (r *Run) now() *metav1.Time {
	return &metav1.Time{Time: r.Clock.Now().UTC().Truncate(time.Second)}
}

// say sets what the condition Completed says.
func (r *Run) say(reason, message string) { r.reason, r.message = reason, strings.TrimSpace(message) }

// Refuse is the result if the operation would do harm, or cannot work. If users have confirmed it, it ends.
func (r *Run) Refuse(reason string) step.Result {
	switch {
	case r.Underway():
		return r.Wait(Retry, r.At()+reason)
	case r.Confirmed:
		r.end(fleetv1.OperationPhaseFailed)
		r.say(fleetv1.OperationRefusedReason, reason+". Nothing was changed, and it does not begin later: create another one to try again")
		return step.Stop()
	}
	// What was found may have changed since: how old it is at most is part of it.
	r.say(fleetv1.OperationRefusedReason, reason+". This is checked again every "+RefusedRetry.String())
	return step.WaitAtMost(RefusedRetry, reason)
}

// Fail ends the operation: it can no longer succeed. The message says what to do.
func (r *Run) Fail(message string) step.Result {
	r.end(fleetv1.OperationPhaseFailed)
	r.say(fleetv1.OperationFailedReason, message)
	return step.Stop()
}

// Succeed ends the operation. The message is what users should know, and may be empty.
func (r *Run) Succeed(message string) step.Result {
	r.end(fleetv1.OperationPhaseCompleted)
	r.say(fleetv1.OperationCompletedReason, message)
	return step.Stop()
}

func (r *Run) end(phase fleetv1.OperationPhase) { *r.Phase, *r.CompletionTime = phase, r.now() }

// NotConfirmed is the result until users have confirmed what the message says. It is written again after a while, as it may have changed.
func (r *Run) NotConfirmed(message string) step.Result {
	r.say(fleetv1.OperationNotConfirmedReason, message)
	return step.WaitAtMost(RefusedRetry, "users to confirm the operation")
}

// Paused is the result of an operation that users have paused, and that looks again after d. The message says what comes next.
func (r *Run) Paused(d time.Duration, message string) step.Result {
	r.say(fleetv1.OperationPausedReason, message+". Set spec.paused to false to go on")
	return step.WaitAtMost(d, "spec.paused to be false")
}

// Wait is the result if something must happen first, for which it looks again after d. The message says what to do if it does not.
func (r *Run) Wait(d time.Duration, message string) step.Result {
	r.say(fleetv1.OperationWaitingReason, message)
	return step.WaitAtMost(d, message)
}

// At returns the present step, as the beginning of a message; empty if there is none.
func (r *Run) At() string {
	if m := r.Marks.Current(); m != nil {
		return "Step " + m.Name + ": "
	}
	return ""
}

// Running sets what the operation does.
func (r *Run) Running(message string) { r.say(fleetv1.OperationRunningReason, message) }

// Unknown keeps the condition as it is: nothing was found out.
func (r *Run) Unknown() { r.say("", "") }

// Report returns the condition Completed.
func (r *Run) Report() []metav1.Condition {
	const t = fleetv1.OperationCompletedCondition
	before := report.Get(r.Before, t)
	message := condition.Truncate(strings.TrimSpace(r.Finishing+" "+r.message), maxCondition)
	switch {
	case r.reason == fleetv1.OperationCompletedReason:
		return []metav1.Condition{report.True(t, r.reason, "%s", r.message)}
	case r.reason != "":
		return []metav1.Condition{report.False(t, r.reason, "%s", message)}
	case before != nil:
		return []metav1.Condition{*before}
	case *r.Phase == fleetv1.OperationPhaseCompleted: // A copy without its status.
		return []metav1.Condition{report.True(t, fleetv1.OperationCompletedReason, "")}
	case *r.Phase == fleetv1.OperationPhaseFailed:
		return []metav1.Condition{report.False(t, fleetv1.OperationFailedReason, "")}
	}
	return []metav1.Condition{report.None(t)}
}
