package reference_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// contains reports whether an error contains a text.
func contains(err error, text string) bool {
	if err == nil || text == "" {
		return err == nil && text == ""
	}
	return strings.Contains(err.Error(), text)
}

// delete deletes what a Machine refers to, as a step.
func (w *world) delete(t *testing.T, ref *clusterv1.ContractVersionedObjectReference, m *clusterv1.Machine) (step.Result, error) {
	t.Helper()
	return steptest.Run(t.Context(), m, ref, step.Do("delete", func(ctx context.Context, ref *clusterv1.ContractVersionedObjectReference) (step.Result, error) {
		return w.follow.Delete(ctx, ref, m, clusterv1.InfrastructureReadyV1Beta1Condition)
	}))
}

func TestDelete(t *testing.T) {
	says := func(reason string) *clusterv1.Condition {
		c := condition.False(clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.ConditionSeverityInfo, reason, "")
		if reason == clusterv1.DeletingV1Beta1Reason {
			c.Message = "Waiting for Thing one to be deleted"
		}
		return &c
	}
	held := func(owners ...metav1.OwnerReference) *unstructured.Unstructured {
		obj := thing("one", nil, owners...)
		obj.SetFinalizers([]string{"provider/x"})
		return obj
	}
	for name, c := range map[string]struct {
		reason string
		obj    *unstructured.Unstructured
		noRef  bool
		waits  bool
		want   *clusterv1.Condition
		gone   bool
	}{
		"NoReference": {"there is nothing to delete", nil, true, false, nil, true},
		"Gone":        {"it was deleted", nil, false, false, says(clusterv1.DeletedV1Beta1Reason), true},
		"Ours":        {"it is deleted, and its deletion is awaited", held(owner("Machine", "m", true)), false, true, says(clusterv1.DeletingV1Beta1Reason), true},
		"Nobodys":     {"also if it has no controller yet", held(), false, true, says(clusterv1.DeletingV1Beta1Reason), true},
		"Formers":     {"also if another kind controls it until the owner does", held(owner("MachineSet", "s", true)), false, true, says(clusterv1.DeletingV1Beta1Reason), true},
		"Anothers":    {"an object of another Machine is kept", held(owner("Machine", "n", true)), false, false, says(clusterv1.DeletedV1Beta1Reason), false},
	} {
		t.Run(name, func(t *testing.T) {
			var there []client.Object
			if c.obj != nil {
				there = append(there, c.obj)
			}
			w := newWorld(t, there...)
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", UID: "uid-of-m"}}
			ref := to("example.com", "Thing", "one")
			if c.noRef {
				ref = nil
			}
			r, err := w.delete(t, ref, m)
			if err != nil || r.Ends() != c.waits {
				t.Errorf("%s: waits for %q, err = %v", c.reason, r.Waiting(), err)
			}
			if diff := cmp.Diff(c.want, condition.Get(m, clusterv1.InfrastructureReadyV1Beta1Condition)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
			left := thing("one", nil)
			err = w.Get(t.Context(), client.ObjectKeyFromObject(left), left)
			if gone := apierrors.IsNotFound(err) || !left.GetDeletionTimestamp().IsZero(); gone != c.gone {
				t.Errorf("%s: deleted = %t, err = %v", c.reason, gone, err)
			}
		})
	}
}

// TestDeleteObjectsMissingInTheCache: an object is only considered deleted after one live read.
func TestDeleteObjectsMissingInTheCache(t *testing.T) {
	obj := thing("one", nil, owner("Machine", "m", true))
	obj.SetFinalizers([]string{"provider/x"})
	w := newWorld(t, obj)
	w.Cache.Hide(obj)
	w.follow.Live = w.ForController().Live
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", UID: "uid-of-m"}}
	ref := to("example.com", "Thing", "one")
	if r, err := w.delete(t, ref, m); err != nil || !r.Ends() {
		t.Errorf("it exists: waits for %q, err = %v", r.Waiting(), err)
	}
	obj = get(t, w, "one")
	obj.SetFinalizers(nil)
	testenv.Must(t, w.Update(t.Context(), obj), client.IgnoreNotFound(w.Delete(t.Context(), obj)))
	for range 3 {
		if r, err := w.delete(t, ref, m); err != nil || r.Ends() {
			t.Errorf("it is deleted: waits for %q, err = %v", r.Waiting(), err)
		}
	}
	if len(w.LiveReads) != 2 {
		t.Errorf("live reads %q, want one while it existed and one after its deletion", w.LiveReads)
	}
}

// TestDeleteKindThatIsNotInstalled: nothing of a kind exists without its CustomResourceDefinition, so nothing is left to delete. That is
// decided in the API server.
func TestDeleteKindThatIsNotInstalled(t *testing.T) {
	w := newWorld(t)
	w.follow.Live = w.ForController().Live
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", UID: "uid-of-m"}}
	if r, err := w.delete(t, to("example.com", "Gadget", "one"), m); err != nil || r.Ends() {
		t.Errorf("waits for %q, err = %v", r.Waiting(), err)
	}
	want := condition.False(clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.ConditionSeverityInfo, clusterv1.DeletedV1Beta1Reason,
		"Gadget one does not exist: its kind Gadget.example.com is not installed")
	if diff := cmp.Diff(&want, condition.Get(m, clusterv1.InfrastructureReadyV1Beta1Condition)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	crd := object.CRD(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Gadget"})
	testenv.Must(t, w.Create(t.Context(), crd))
	w.Cache.Hide(crd)
	r, err := w.delete(t, to("example.com", "Gadget", "one"), m)
	if err == nil {
		t.Errorf("a kind that is only missing in the cache: waits for %q, want an error", r.Waiting())
	}
}
