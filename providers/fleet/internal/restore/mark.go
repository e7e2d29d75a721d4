package restore

import (
	"context"
	"errors"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// poll is how often a step looks whether what it waits for has happened; retry is the pause after an error.
	poll, retry = time.Second, 5 * time.Second
	// written is what a step waits for that has changed the status: the write is an event.
	written = "its status to be written"
	// maxMessage is the longest message of a step.
	maxMessage = 1024
)

// outcome is what a step has achieved.
type outcome struct {
	// done is set if the step is complete, write if what it has recorded in the status must be there before it goes on.
	done, write bool
	// message is what it has done, or waits for.
	message string
}

// done returns the outcome of a step that is complete.
func done(message string) outcome { return outcome{done: true, message: message} }

// waits returns the outcome of a step that waits.
func waits(message string) outcome { return outcome{message: message} }

// refusal is an error because of which the restore must not begin.
type refusal struct{ reason string }

// Error implements error.
func (r refusal) Error() string { return r.reason }

// refuse returns a refusal.
func refuse(reason string) error { return refusal{reason} }

// marked returns a step with a mark in the status. It is not taken again once it is complete, and ends after the limit, to be tried again.
func (c *Controller) marked(
	name, mark string, limit time.Duration, take func(context.Context, *scope) (outcome, error),
) step.Step[*scope] {
	return step.Do(name, func(ctx context.Context, s *scope) (step.Result, error) {
		if s.completed(mark) {
			return step.Done(), nil
		}
		if !s.begun(mark) {
			s.restore.Status.Steps = append(s.restore.Status.Steps, fleetv1.OperationStep{Name: mark, StartTime: c.now()})
			return step.Wait(written), nil
		}
		attempt, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		out, err := take(attempt, s)
		if ctx.Err() != nil {
			return step.Result{}, ctx.Err() // The manager ends.
		}
		return c.conclude(ctx, s, markOf(s.restore, mark), out, err)
	})
}

// conclude records what a step has achieved.
func (c *Controller) conclude(ctx context.Context, s *scope, m *fleetv1.OperationStep, out outcome, err error) (step.Result, error) {
	var refused refusal
	switch {
	case errors.As(err, &refused):
		return c.refuse(s, refused.reason), nil
	case err != nil && step.IsStale(err):
		return step.Result{}, err
	case err != nil:
		s.failed = err
		m.Message = text(err.Error())
		step.WarningTransition(ctx, m.Name+"Failed", "%s", condition.Brief(err.Error()))
		return step.WaitAtMost(retry, "step "+m.Name+" to succeed"), nil
	case out.done:
		m.CompletionTime, m.Message = c.now(), text(out.message)
		step.Event(ctx, m.Name+"Completed", "%s", condition.Brief(out.message))
		return step.Wait(written), nil
	}
	s.waiting = out.message
	m.Message = text(out.message)
	if out.write {
		return step.Wait(written), nil
	}
	return step.WaitAtMost(poll, out.message), nil
}

// refuse ends a restore that users have confirmed: it must not begin by surprise when what is wrong has changed. Another one is considered
// again after a while.
func (c *Controller) refuse(s *scope, reason string) step.Result {
	s.refused = reason
	switch {
	case s.begun(fleetv1.RestoreStepHold):
		s.waiting, s.refused = reason, "" // The control plane is held: it goes on when this has changed.
		return step.WaitAtMost(retry, reason)
	case s.restore.Spec.Confirm != "":
		s.restore.Status.Phase, s.restore.Status.CompletionTime = fleetv1.OperationPhaseFailed, c.now()
		return step.Stop()
	}
	return step.WaitAtMost(refusedRetry, "what is refused to change")
}

// refusedRetry is how often a restore that is refused is considered again: it reads an archive.
const refusedRetry = 30 * time.Second

func (c *Controller) now() *metav1.Time {
	return &metav1.Time{Time: c.Clock.Now().UTC().Truncate(time.Second)}
}

// markOf returns the mark of a step; nil if it was not begun.
func markOf(r *fleetv1.ControlPlaneRestore, name string) *fleetv1.OperationStep {
	for i := range r.Status.Steps {
		if r.Status.Steps[i].Name == name {
			return &r.Status.Steps[i]
		}
	}
	return nil
}

// text returns a message that fits into the status.
func text(s string) string { return condition.Truncate(strings.TrimSpace(s), maxMessage) }
