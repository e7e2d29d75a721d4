package step

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
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
		Clients:    Clients{Client: w.Client, Live: w.Client, Recorder: w.events, Clock: testclock.NewFakePassiveClock(now)},
		newObject:  func() *clusterv1.Machine { return &clusterv1.Machine{} },
		conditions: condition.Kind{Ready: []clusterv1.ConditionType{clusterv1.BootstrapReadyV1Beta1Condition}},
		name:       "machine",
		metrics:    newMetrics(prometheus.NewRegistry()),
		reconcile:  do,
		observed:   func(m *clusterv1.Machine, g int64) { m.Status.ObservedGeneration = g },
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
		condition.Set(m, condition.True(clusterv1.BootstrapReadyV1Beta1Condition))
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
		{Type: clusterv1.ReadyV1Beta1Condition, Status: corev1.ConditionTrue, LastTransitionTime: stamp},
		{Type: clusterv1.BootstrapReadyV1Beta1Condition, Status: corev1.ConditionTrue, LastTransitionTime: stamp},
	}
	m := w.machine(t)
	if diff := cmp.Diff(conditions, m.GetV1Beta1Conditions()); diff != "" {
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
		condition.Set(m, condition.False(clusterv1.BootstrapReadyV1Beta1Condition, clusterv1.ConditionSeverityInfo, "Waiting", ""))
		return Done(), errors.New("the provider is away")
	}, machine())
	if _, err := w.reconcile(t); err == nil {
		t.Error("the error of a step must reach the workqueue")
	}
	m := w.machine(t)
	if !condition.IsFalse(m, clusterv1.BootstrapReadyV1Beta1Condition) {
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
		condition.Set(other, condition.True(clusterv1.MachineHealthCheckSucceededV1Beta1Condition))
		if err := w.Status().Update(ctx, other); err != nil {
			return Done(), err
		}
		condition.Set(m, condition.True(clusterv1.BootstrapReadyV1Beta1Condition))
		return Done(), nil
	}, machine())
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	m := w.machine(t)
	for _, c := range []clusterv1.ConditionType{clusterv1.ReadyV1Beta1Condition, clusterv1.BootstrapReadyV1Beta1Condition, clusterv1.MachineHealthCheckSucceededV1Beta1Condition} {
		if !condition.IsTrue(m, c) {
			t.Errorf("condition %s is lost in a write that met a newer object: %v", c, m.GetV1Beta1Conditions())
		}
	}
}

func TestCheckpointPrecedesTheNextStep(t *testing.T) {
	var w *world
	w = newWorld(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		return Run(ctx, m,
			Do("step1", func(_ context.Context, m *clusterv1.Machine) (Result, error) {
				m.Finalizers = []string{clusterv1.MachineFinalizer}
				return Checkpoint(), nil
			}),
			Do("step2", func(context.Context, *clusterv1.Machine) (Result, error) {
				if live := w.machine(t); len(live.Finalizers) == 0 {
					return Done(), fmt.Errorf("the finalizer is not in the API server")
				}
				return Done(), nil
			}))
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

// laggingWorld is a world in which the object was written as another version than its cache shows. Live is asked about
// the object that live returns.
func laggingWorld(t *testing.T, written string, live *clusterv1.Machine) (w *world, clock *testclock.FakePassiveClock, ran *int) {
	t.Helper()
	ran = new(int)
	w = newWorld(t, func(context.Context, *clusterv1.Machine) (Result, error) {
		*ran++
		return Done(), nil
	}, machine())
	clock = testclock.NewFakePassiveClock(now)
	w.runner.Clock, w.runner.observed = clock, nil
	w.runner.Live = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			if live == nil {
				return apierrors.NewNotFound(clusterv1.GroupVersion.WithResource("machines").GroupResource(), key.Name)
			}
			live.DeepCopyInto(into.(*clusterv1.Machine))
			return nil
		},
	})
	w.runner.written.remember(client.ObjectKeyFromObject(machine()), written, staleBackstop, now)
	return w, clock, ran
}

// TestOwnWriteNotYetInCache: a reconcile waits for a lagging cache, but not for a version that never appears.
func TestOwnWriteNotYetInCache(t *testing.T) {
	version := func(v string) *clusterv1.Machine {
		m := machine()
		m.ResourceVersion = v
		return m
	}
	const cached = "999" // what the fake API server gives to a first object
	for name, c := range map[string]struct {
		reason  string
		written string
		live    *clusterv1.Machine
		// ran is how many reconciles run: immediately, after the backstop, and much later.
		ran []int
	}{
		"Lagging":        {"the live object is newer than the cached one: go on waiting", "1000", version("1001"), []int{0, 0, 0}},
		"Shown":          {"the cache has our write", cached, version("1001"), []int{1, 2, 3}},
		"Overtaken":      {"the cache has a later write", "998", version("1001"), []int{1, 2, 3}},
		"Restored":       {"etcd was restored from before our write: the cache shows what there is", "1000000", version(cached), []int{0, 1, 2}},
		"Gone":           {"the object was deleted, and the cache will catch up", "1000", nil, []int{0, 0, 0}},
		"Opaque":         {"versions without order can only be compared with the live one", "z", version(cached), []int{0, 1, 2}},
		"OpaqueLagging":  {"and a cache that lags is found to by the same", "z", version("y"), []int{0, 0, 0}},
		"RestoredBehind": {"after a restore the cache may still lag behind the live object", "1000000", version("1005"), []int{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w, clock, ran := laggingWorld(t, c.written, c.live)
			var got []int
			for _, at := range []time.Duration{staleBackstop / 2, staleBackstop, time.Hour} {
				clock.SetTime(now.Add(at))
				after := w.mustReconcile(t)
				if held := len(got) == 0 && *ran == 0 || len(got) > 0 && *ran == got[len(got)-1]; held != (after > 0) {
					t.Errorf("after %s: held = %t, requeued after %s", at, held, after)
				}
				got = append(got, *ran)
			}
			if diff := cmp.Diff(c.ran, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestDeletedObjectStillInCache: the write that removes the last finalizer is not repeated while the cache still has the object. Its
// response has the version from before.
func TestDeletedObjectStillInCache(t *testing.T) {
	m := machine()
	m.UID, m.Finalizers, m.DeletionTimestamp = "deleted", []string{clusterv1.MachineFinalizer}, &metav1.Time{Time: now}
	w := newWorld(t, func(_ context.Context, m *clusterv1.Machine) (Result, error) {
		m.Finalizers = nil
		return Done(), nil
	}, m)
	clock := testclock.NewFakePassiveClock(now)
	w.runner.Clock, w.runner.observed = clock, nil
	cached := w.machine(t)
	w.runner.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			cached.DeepCopyInto(into.(*clusterv1.Machine))
			return nil
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			err := c.Patch(ctx, obj, p, o...)
			obj.SetResourceVersion(cached.ResourceVersion)
			return err
		},
	})
	for _, at := range []time.Duration{0, staleBackstop / 2, staleBackstop, time.Minute} {
		clock.SetTime(now.Add(at))
		if after := w.mustReconcile(t); (after > 0) != (at > 0) {
			t.Errorf("after %s: requeued after %s", at, after)
		}
		if len(w.writes) != 1 {
			t.Fatalf("after %s: %q, want one write", at, w.writes)
		}
	}
	cached.UID = "created again"
	w.mustReconcile(t)
	if len(w.writes) != 2 {
		t.Errorf("an object that was created again is not reconciled: %q", w.writes)
	}
}

func TestLiveReadsBackOff(t *testing.T) {
	live := machine()
	live.ResourceVersion = "1001"
	w, clock, _ := laggingWorld(t, "1000", live)
	var pauses []time.Duration
	for at := now.Add(staleBackstop); len(pauses) < 8; {
		clock.SetTime(at)
		pauses = append(pauses, w.mustReconcile(t))
		at = at.Add(pauses[len(pauses)-1])
	}
	want := []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute, time.Minute}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestStaleErrorsAreReportedEventually: an apparently stale cache may be an object of another owner.
func TestStaleErrorsAreReportedEventually(t *testing.T) {
	exists := apierrors.NewAlreadyExists(clusterv1.GroupVersion.WithResource("machines").GroupResource(), "leftover")
	var fails error = exists
	w := newWorld(t, func(context.Context, *clusterv1.Machine) (Result, error) { return Done(), fails }, machine())
	silent := func() []time.Duration {
		t.Helper()
		var pauses []time.Duration
		for range 20 {
			result, err := w.reconcile(t)
			if err != nil {
				if !IsStale(err) || !strings.Contains(err.Error(), "leftover") {
					t.Errorf("the error lacks the cause: %v", err)
				}
				return pauses
			}
			pauses = append(pauses, result.RequeueAfter)
		}
		return pauses
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	want := []time.Duration{ms(50), ms(100), ms(200), ms(400), ms(800), ms(1600), ms(3200)}
	if diff := cmp.Diff(want, silent()); diff != "" {
		t.Errorf("silent retries, then an error for the workqueue: -want +got:\n%s", diff)
	}
	if got := silent(); len(got) != 0 {
		t.Errorf("after a success, errors must be silent again: %v", got)
	}
	fails = nil
	w.mustReconcile(t)
	fails = exists
	if diff := cmp.Diff(want, silent()); diff != "" {
		t.Errorf("after a success it starts over: -want +got:\n%s", diff)
	}
}

// TestObjectsOfOtherManagersAreLeftAlone: whatever event led to them.
func TestObjectsOfOtherManagersAreLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		label  string
		want   bool
	}{
		"Unlabelled": {"an object without the label belongs to another manager", "", false},
		"Other":      {"an object of another value is another manager's", "green", false},
		"Ours":       {"an object with our value belongs to this manager", "blue", true},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine()
			if c.label != "" {
				m.Labels = map[string]string{clusterv1.WatchLabel: c.label}
			}
			ran := false
			w := newWorld(t, func(context.Context, *clusterv1.Machine) (Result, error) {
				ran = true
				return Done(), nil
			}, m)
			w.runner.Filter = "blue"
			w.mustReconcile(t)
			if ran != c.want || (len(w.writes) > 0) != c.want {
				t.Errorf("ran = %t, wrote %q, want %t: %s", ran, w.writes, c.want, c.reason)
			}
		})
	}
}

// TestObjectsOfOtherControllersAreLeftAlone: several controllers may share a kind.
func TestObjectsOfOtherControllersAreLeftAlone(t *testing.T) {
	for _, selected := range []bool{false, true} {
		ran := false
		w := newWorld(t, func(context.Context, *clusterv1.Machine) (Result, error) {
			ran = true
			return Done(), nil
		}, machine())
		w.runner.selects = func(*clusterv1.Machine) bool { return selected }
		w.mustReconcile(t)
		if ran != selected {
			t.Errorf("ran = %t, although the controller selects the object: %t", ran, selected)
		}
	}
}
