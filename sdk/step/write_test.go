package step

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// other is a world without a reconcile, and a stale copy of a Machine that others have written since.
func other(t *testing.T) (*world, *clusterv1.Machine) {
	t.Helper()
	m := machine()
	m.Labels = map[string]string{"a": "1", "b": "1"}
	m.Finalizers = []string{"one"}
	condition.Set(m, condition.True(clusterv1.BootstrapReadyV1Beta1Condition))
	w := newWorld(t, nil, m)
	old := w.machine(t)
	newer := w.machine(t)
	newer.Labels["theirs"] = "1"
	if err := w.Update(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	condition.Set(newer, condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition))
	if err := w.Status().Update(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	w.writes = nil
	return w, old
}

func TestPatch(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		exact  bool
		change func(*clusterv1.Machine)
		want   []string
		stale  bool
	}{
		"Nothing": {"what changes nothing costs nothing", true, func(*clusterv1.Machine) {}, nil, false},
		"Map": {
			"labels of other clients are kept", false, func(m *clusterv1.Machine) { m.Labels["a"] = "2"; delete(m.Labels, "b") },
			[]string{`metadata {"metadata":{"labels":{"a":"2","b":null}}}`}, false,
		},
		"List": {
			"a list would be replaced as a whole", false, func(m *clusterv1.Machine) { m.Finalizers = append(m.Finalizers, "two") },
			[]string{`metadata {"metadata":{"finalizers":["one","two"],"resourceVersion":"999"}}`}, true,
		},
		"Exact": {
			"the decision about the object may no longer hold", true, func(m *clusterv1.Machine) { m.Labels["a"] = "2" },
			[]string{`metadata {"metadata":{"labels":{"a":"2"},"resourceVersion":"999"}}`}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, m := other(t)
			var opts []WriteOption
			if c.exact {
				opts = append(opts, IfUnchanged)
			}
			err := w.runner.Patch(t.Context(), m, func() { c.change(m) }, opts...)
			if c.stale != (err != nil) || err != nil && !IsStale(err) {
				t.Errorf("%s: error %v, want stale = %t", c.reason, err, c.stale)
			}
			if diff := cmp.Diff(c.want, w.writes); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
			if len(c.want) > 0 && !c.stale && m.Labels["theirs"] != "1" {
				t.Errorf("%s: the object is not as the API server has it: %v", c.reason, m.Labels)
			}
		})
	}
}

// TestPatchUnstructured: providers' objects have no Go types here.
func TestPatchUnstructured(t *testing.T) {
	w, m := other(t)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.MachineKind))
	if err := w.runner.Patch(t.Context(), u, func() { u.SetFinalizers([]string{"two"}) }, IfUnchanged); !IsStale(err) {
		t.Errorf("it was written since: error %v, want a stale one", err)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(m), u); err != nil {
		t.Fatal(err)
	}
	if err := w.runner.Patch(t.Context(), u, func() { u.SetFinalizers([]string{"two"}) }, IfUnchanged); err != nil {
		t.Fatal(err)
	}
	live := w.machine(t)
	if diff := cmp.Diff([]string{"two"}, live.Finalizers); diff != "" || u.GetResourceVersion() != live.ResourceVersion {
		t.Errorf("version %s, want %s; finalizers, -want +got:\n%s", u.GetResourceVersion(), live.ResourceVersion, diff)
	}
}

func TestDelete(t *testing.T) {
	w, m := other(t)
	if err := w.runner.Delete(t.Context(), m); !IsStale(err) {
		t.Errorf("it was written since: error %v, want a stale one", err)
	}
	again := machine()
	again.UID = "another"
	if err := w.runner.DeleteAny(t.Context(), again); err != nil {
		t.Errorf("another object of the same name must be kept: %v", err)
	}
	if err := w.runner.DeleteAny(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	left := w.machine(t)
	if left.DeletionTimestamp == nil {
		t.Error("it is not being deleted")
	}
	left.Finalizers = nil
	if err := w.Update(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	for name, remove := range map[string]func(context.Context, client.Object) error{"Delete": w.runner.Delete, "DeleteAny": w.runner.DeleteAny} {
		if err := remove(t.Context(), m); err != nil {
			t.Errorf("%s: a missing object must not be an error: %v", name, err)
		}
	}
}

func TestState(t *testing.T) {
	unhealthy := condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationV1Beta1Reason, "")
	w, m := other(t)
	if err := w.runner.SetConditions(t.Context(), m, unhealthy); err != nil {
		t.Fatal(err)
	}
	live := w.machine(t)
	for _, c := range []clusterv1.ConditionType{clusterv1.BootstrapReadyV1Beta1Condition, clusterv1.MachineNodeHealthyV1Beta1Condition} {
		if !condition.IsTrue(live, c) {
			t.Errorf("condition %s of another controller is lost", c)
		}
	}
	stated := condition.Get(live, clusterv1.MachineOwnerRemediatedV1Beta1Condition)
	if stated == nil || stated.Reason != unhealthy.Reason || !stated.LastTransitionTime.Equal(&metav1.Time{Time: now}) {
		t.Errorf("stated %+v, want %+v at %s", stated, unhealthy, now)
	}
	if err := w.runner.Delete(t.Context(), m); !IsStale(err) {
		t.Errorf("what was written over was another version than m, so m must not be deleted: %v", err)
	}
	w.writes = nil
	if err := w.runner.SetConditions(t.Context(), live, unhealthy); err != nil || len(w.writes) != 0 {
		t.Errorf("stating the same again: wrote %q, error %v", w.writes, err)
	}
	gone := machine()
	gone.Name, gone.ResourceVersion = "gone", "1"
	if err := w.runner.SetConditions(t.Context(), gone, unhealthy); err != nil {
		t.Errorf("a missing Machine must not be an error: %v", err)
	}
}

func TestCreate(t *testing.T) {
	w := newWorld(t, nil)
	if err := w.runner.Create(t.Context(), machine()); err != nil {
		t.Fatal(err)
	}
	if err := w.runner.Create(t.Context(), machine()); !apierrors.IsAlreadyExists(err) || !IsStale(err) {
		t.Errorf("creating it twice: %v, want that the cache is old", err)
	}
}

// missing is a cache that shows an object after some reads.
type missing struct {
	client.Reader
	reads, until int
}

// Get implements client.Reader.
func (m *missing) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if m.reads++; m.reads < m.until {
		return apierrors.NewNotFound(clusterv1.Resource("machines"), key.Name)
	}
	return m.Reader.Get(ctx, key, obj, opts...)
}

func TestCreateIn(t *testing.T) {
	for _, tt := range []struct {
		reason string
		cached bool
		reads  int
	}{
		{reason: "it waits for the object in the other cache", cached: true, reads: 3},
		{reason: "without a cache, it neither waits nor reads"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, nil)
			other, own := &missing{Reader: w, until: 3}, &missing{Reader: w}
			clients := w.runner.Clients
			clients.Client = reading{clients.Client, own}
			var in client.Reader
			if tt.cached {
				in = other
			}
			if err := clients.CreateIn(t.Context(), in, machine()); err != nil {
				t.Fatal(err)
			}
			if other.reads != tt.reads || own.reads != 0 {
				t.Errorf("%d reads of the other cache, want %d; %d of the client, want none", other.reads, tt.reads, own.reads)
			}
			if err := clients.CreateIn(t.Context(), in, machine()); !IsStale(err) {
				t.Errorf("creating it again: error %v, want a stale one", err)
			}
		})
	}
}

// reading is a client that reads from a cache.
type reading struct {
	client.Client
	cache client.Reader
}

// Get implements client.Reader.
func (r reading) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.cache.Get(ctx, key, obj, opts...)
}
