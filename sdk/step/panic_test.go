package step

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// A panic that repeats with each reconcile is visible on the object, and does not undo what other steps did.
func TestPanicIsReported(t *testing.T) {
	var none []string
	panics := func(context.Context, *clusterv1.Machine) (Result, error) { return Done(), nil }
	w := newWorld(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		return Run(ctx, m,
			Do("finalizer", func(_ context.Context, m *clusterv1.Machine) (Result, error) {
				m.Finalizers = []string{clusterv1.MachineFinalizer}
				return Done(), nil
			}),
			All(
				Do("bootstrap", func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
					m.Status.Phase = none[len(m.Name)]
					return panics(ctx, m)
				}).Sets(clusterv1.BootstrapReadyV1Beta1Condition),
				Do("infrastructure", panics).Sets(clusterv1.InfrastructureReadyV1Beta1Condition),
			))
	}, machine())
	const message = `step bootstrap panicked: runtime error: index out of range [1] with length 0; this is a bug, and is retried`
	if _, err := w.reconcile(t); err == nil || err.Error() != message {
		t.Errorf("the error for the work queue, which retries with backoff: %v", err)
	}
	m := w.machine(t)
	want := condition.False(clusterv1.BootstrapReadyV1Beta1Condition, clusterv1.ConditionSeverityError, panicReason, "%s", message)
	got := *condition.Get(m, clusterv1.BootstrapReadyV1Beta1Condition)
	got.LastTransitionTime = want.LastTransitionTime
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the step's condition (-want +got):\n%s", diff)
	}
	if !condition.IsTrue(m, clusterv1.InfrastructureReadyV1Beta1Condition) || len(m.Finalizers) != 1 {
		t.Errorf("other steps run, and their changes are written: %+v", m)
	}
	if event := <-w.events.Events; event != "Warning ReconcilePanicked "+message {
		t.Errorf("the event: %s", event)
	}
}

// The runner also contains a panic outside of steps, such as of a Scope.
func TestPanicOutsideOfSteps(t *testing.T) {
	w := newWorld(t, func(context.Context, *clusterv1.Machine) (Result, error) { panic("s3cret") }, machine())
	_, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(machine())})
	if err == nil || !strings.HasPrefix(err.Error(), "controller machine panicked: string") {
		t.Errorf("err = %v", err)
	}
	if event := <-w.events.Events; !strings.HasPrefix(event, corev1.EventTypeWarning+" ReconcilePanicked controller machine panicked") {
		t.Errorf("the event: %s", event)
	}
}
