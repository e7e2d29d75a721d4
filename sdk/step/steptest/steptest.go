// Package steptest runs single steps in tests.
package steptest

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/internal/current"
)

// Run runs steps in order, as a reconcile of obj would, and sets their conditions on obj. It writes nothing, and drops events.
func Run[S any](ctx context.Context, obj condition.Setter, s S, steps ...step.Step[S]) (step.Result, error) {
	return step.Run(current.Into(ctx, unwritten{obj}), s, steps...)
}

// unwritten is a reconcile that only sets conditions in memory.
type unwritten struct{ obj condition.Setter }

// SetCondition implements current.Reconcile.
func (u unwritten) SetCondition(c clusterv1.Condition) { condition.Set(u.obj, c) }

// Report implements current.Reconcile.
func (u unwritten) Report(conditions []metav1.Condition) {
	if on, ok := u.obj.(report.Setter); ok {
		report.Set(on, 0, time.Time{}, conditions...)
	}
}

// Checkpoint implements current.Reconcile.
func (unwritten) Checkpoint(context.Context) error { return nil }

// Record implements current.Reconcile.
func (unwritten) Record(current.Event) {}

// StepDone implements current.Reconcile.
func (unwritten) StepDone(current.Step) {}

// Publish implements current.Reconcile.
func (unwritten) Publish(context.Context, []metav1.Condition) error { return nil }

// Now implements current.Reconcile.
func (unwritten) Now() (now time.Time) { return now }
