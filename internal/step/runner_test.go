package step

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a fake API server that counts writes, and a Runner over it.
type world struct {
	client.Client
	writes []string
	runner *Runner[*clusterv1.Machine]
	events *record.FakeRecorder
}

func newWorld(t *testing.T, do func(context.Context, *clusterv1.Machine) (Result, error), objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{events: record.NewFakeRecorder(10)}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&clusterv1.Machine{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
				raw, _ := p.Data(obj)
				w.writes = append(w.writes, "metadata "+string(raw))
				return c.Patch(ctx, obj, p, o...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
				w.writes = append(w.writes, sub)
				return c.SubResource(sub).Patch(ctx, obj, p, o...)
			},
		}).Build()
	w.runner = &Runner[*clusterv1.Machine]{
		Outside:    Outside{Client: w.Client, Live: w.Client, Recorder: w.events, Clock: testclock.NewFakePassiveClock(now)},
		New:        func() *clusterv1.Machine { return &clusterv1.Machine{} },
		Conditions: condition.Kind{Ready: []clusterv1.ConditionType{clusterv1.BootstrapReadyCondition}},
		Do:         do,
		Observed:   func(m *clusterv1.Machine, g int64) { m.Status.ObservedGeneration = g },
	}
	return w
}

func machine() *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", Generation: 3}}
}

func (w *world) reconcile(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(machine())})
}

func (w *world) machine(t *testing.T) *clusterv1.Machine {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(machine()), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCommitWritesOnceAndOnlyWhatChanged(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		m.Finalizers = []string{clusterv1.MachineFinalizer}
		condition.Set(m, condition.True(clusterv1.BootstrapReadyCondition))
		Event(ctx, "Bootstrapped", "the machine %s is bootstrapped", m.Name)
		return Done(), nil
	}, machine())
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := []string{`metadata {"metadata":{"finalizers":["machine.cluster.x-k8s.io"],"resourceVersion":"999"}}`, "status"}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Errorf("one patch of metadata, one of status, -want +got:\n%s", diff)
	}
	stamp := metav1.NewTime(now)
	conditions := clusterv1.Conditions{
		{Type: clusterv1.ReadyCondition, Status: corev1.ConditionTrue, LastTransitionTime: stamp},
		{Type: clusterv1.BootstrapReadyCondition, Status: corev1.ConditionTrue, LastTransitionTime: stamp},
	}
	m := w.machine(t)
	if diff := cmp.Diff(conditions, m.Status.Conditions); diff != "" {
		t.Errorf("conditions, Ready computed and times stamped, -want +got:\n%s", diff)
	}
	if m.Status.ObservedGeneration != 3 {
		t.Errorf("observed generation = %d, want 3", m.Status.ObservedGeneration)
	}
	w.writes = nil
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if len(w.writes) != 0 {
		t.Errorf("stating the same again must write nothing, wrote %q", w.writes)
	}
}

func TestCommitKeepsWhatStepsChangedBeforeAnError(t *testing.T) {
	w := newWorld(t, func(_ context.Context, m *clusterv1.Machine) (Result, error) {
		condition.Set(m, condition.False(clusterv1.BootstrapReadyCondition, clusterv1.ConditionSeverityInfo, "Waiting", ""))
		return Done(), errors.New("the provider is away")
	}, machine())
	if _, err := w.reconcile(t); err == nil {
		t.Error("the error of a step must reach the workqueue")
	}
	m := w.machine(t)
	if !condition.IsFalse(m, clusterv1.BootstrapReadyCondition) {
		t.Error("a condition stated before the error is lost")
	}
	if m.Status.ObservedGeneration != 0 {
		t.Error("a generation counts as observed only without an error")
	}
}

func TestCommitMergesConditionsOfOthers(t *testing.T) {
	var w *world
	w = newWorld(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		other := w.machine(t)
		condition.Set(other, condition.True(clusterv1.MachineHealthCheckSucceededCondition))
		if err := w.Status().Update(ctx, other); err != nil {
			return Done(), err
		}
		condition.Set(m, condition.True(clusterv1.BootstrapReadyCondition))
		return Done(), nil
	}, machine())
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	m := w.machine(t)
	for _, c := range []clusterv1.ConditionType{clusterv1.ReadyCondition, clusterv1.BootstrapReadyCondition, clusterv1.MachineHealthCheckSucceededCondition} {
		if !condition.IsTrue(m, c) {
			t.Errorf("condition %s is lost in a write that met a newer object: %v", c, m.Status.Conditions)
		}
	}
}

func TestCheckpointPrecedesTheNextStep(t *testing.T) {
	var w *world
	w = newWorld(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		return Run(ctx, m,
			func(_ context.Context, m *clusterv1.Machine) (Result, error) {
				m.Finalizers = []string{clusterv1.MachineFinalizer}
				return Checkpoint(), nil
			},
			func(context.Context, *clusterv1.Machine) (Result, error) {
				if live := w.machine(t); len(live.Finalizers) == 0 {
					return Done(), fmt.Errorf("the finalizer is not in the API server")
				}
				return Done(), nil
			})
	}, machine())
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if len(w.writes) != 2 {
		t.Errorf("a checkpoint is written once: %q", w.writes)
	}
}

func TestPausedObjectsAreLeftAlone(t *testing.T) {
	m := machine()
	m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	w := newWorld(t, func(context.Context, *clusterv1.Machine) (Result, error) {
		t.Error("a paused object is reconciled")
		return Done(), nil
	}, m)
	if _, err := w.reconcile(t); err != nil || len(w.writes) != 0 {
		t.Errorf("err = %v, writes = %q; want none", err, w.writes)
	}
}

func TestOwnWriteNotYetInCache(t *testing.T) {
	w := newWorld(t, func(context.Context, *clusterv1.Machine) (Result, error) {
		t.Error("a reconcile acts on a cache that has not seen our own write")
		return Done(), nil
	}, machine())
	w.runner.written.remember(client.ObjectKeyFromObject(machine()), "1000000")
	result, err := w.reconcile(t)
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("result = %v, err = %v; want to come back", result, err)
	}
}
