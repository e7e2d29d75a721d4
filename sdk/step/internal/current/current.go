// Package current has what steps access through their context: the current reconcile. The Runner of package step implements it, and
// package steptest for tests of steps.
package current

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Reconcile is a reconcile of an object.
type Reconcile interface {
	// Checkpoint writes metadata and spec.
	Checkpoint(ctx context.Context) error
	// Record keeps an event until the commit has succeeded.
	Record(e Event)
	// SetCondition sets a condition of the object.
	SetCondition(c clusterv1.Condition)
	// Report sets metav1 conditions of the object.
	Report(conditions []metav1.Condition)
	// Publish writes everything with metav1 conditions before the reconcile ends.
	Publish(ctx context.Context, conditions []metav1.Condition) error
	// StepDone records the outcome of a step.
	StepDone(s Step)
	// Now returns the current time.
	Now() time.Time
}

// Event is an event on the reconciled object.
type Event struct {
	Type, Reason, Message string
	// WithStatus marks events that are only sent with the status write.
	WithStatus bool
}

// Step is a step that was run.
type Step struct {
	Name    string
	Took    time.Duration
	Outcome string
	// WaitsFor is what the step waits for; empty if it does not wait.
	WaitsFor string
}

type contextKey struct{}

// Into returns a context with a reconcile.
func Into(ctx context.Context, r Reconcile) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// Of returns the reconcile of a context.
func Of(ctx context.Context) (Reconcile, bool) {
	r, ok := ctx.Value(contextKey{}).(Reconcile)
	return r, ok
}
