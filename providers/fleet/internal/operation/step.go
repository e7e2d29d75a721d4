package operation

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// written is what a step waits for that has changed the status: the write is an event.
const written = "the status to be written"

// Outcome is what a step has achieved.
type Outcome struct {
	// done is set if the step is complete, write if what it has recorded in the status must be there before it goes on.
	done, write bool
	// message is what it has done, or waits for.
	message string
}

// Done is the outcome of a step that is complete. The message says what it has done.
func Done(message string) Outcome { return Outcome{done: true, message: message} }

// Waits is the outcome of a step that waits for something.
func Waits(message string) Outcome { return Outcome{message: message} }

// Records is the outcome of a step that goes on when what it has recorded in the status is in the API server.
func Records(message string) Outcome { return Outcome{write: true, message: message} }

// IsDone reports whether the step is complete.
func (o Outcome) IsDone() bool { return o.done }

// Message is what the step has done, or waits for.
func (o Outcome) Message() string { return o.message }

type refusal struct{ reason string }

// Error implements error.
func (r refusal) Error() string { return r.reason }

// Refusal returns an error because of which an operation is refused: only another operation, or a change by users, helps.
func Refusal(reason string) error { return refusal{reason} }

// RefusalOf returns why an operation is refused, if an error is a Refusal.
func RefusalOf(err error) (reason string, refused bool) {
	var r refusal
	refused = errors.As(err, &r)
	return r.reason, refused
}

type failure struct{ message string }

// Error implements error.
func (f failure) Error() string { return f.message }

// Failure returns an error because of which an operation has failed: no other attempt can succeed.
func Failure(message string) error { return failure{message} }

// Scope is a scope of a controller that embeds a *Run.
type Scope interface{ run() *Run }

// Step returns a step of a controller with a mark in the status, whose name is mark in lower case, such as remove-nodes of RemoveNodes. The
// mark is in the API server before the step is taken. It is not taken again once it is complete, and ends after the limit, to be tried
// again.
func Step[S Scope](mark string, limit time.Duration, take func(context.Context, S) (Outcome, error)) step.Step[S] {
	return step.Do(nameOf(mark), func(ctx context.Context, s S) (step.Result, error) {
		r := s.run()
		if r.Completed(mark) {
			return step.Done(), nil
		}
		if !r.Begun(mark) {
			r.Begin(mark)
			r.Running("Step " + mark + " begins")
			return step.Wait(written), nil
		}
		attempt, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		out, err := take(attempt, s)
		if ctx.Err() != nil {
			return step.Result{}, ctx.Err() // The manager ends.
		}
		return r.conclude(ctx, r.Marks.Find(mark), out, err)
	})
}

// conclude records what a step has achieved.
func (r *Run) conclude(ctx context.Context, m *fleetv1.OperationStep, out Outcome, err error) (step.Result, error) {
	var failed failure
	reason, refused := RefusalOf(err)
	switch {
	case refused:
		return r.Refuse(reason), nil
	case errors.As(err, &failed):
		m.Message = Brief(failed.message)
		return r.Fail(failed.message), nil
	case err != nil && step.IsStale(err):
		return step.Result{}, err
	case err != nil:
		m.Message = Brief(err.Error())
		step.WarningTransition(ctx, m.Name+"Failed", "%s", condition.Brief(err.Error()))
		r.Wait(Retry, "Step "+m.Name+": "+err.Error())
		return step.WaitAtMost(Retry, "step "+m.Name+" to succeed"), nil
	case out.done:
		r.Complete(m.Name, out.message)
		step.Event(ctx, m.Name+"Completed", "%s", condition.Brief(out.message))
		if Ended(*r.Phase) {
			return step.Stop(), nil
		}
		return step.Wait(written), nil
	}
	m.Message = Brief(out.message)
	r.Wait(Poll, "Step "+m.Name+": waiting for "+out.message)
	if out.write {
		return step.Wait(written), nil
	}
	return step.WaitAtMost(Poll, out.message), nil
}

// nameOf returns the name of a step with a mark.
func nameOf(mark string) string {
	var name strings.Builder
	for i, c := range mark {
		if unicode.IsUpper(c) && i > 0 {
			name.WriteByte('-')
		}
		name.WriteRune(unicode.ToLower(c))
	}
	return name.String()
}
