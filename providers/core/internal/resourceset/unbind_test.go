package resourceset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// entries returns the names of the entries and owners of a binding; nil if it does not exist.
func (w *world) entries(cluster string) []string {
	w.t.Helper()
	b := bound(cluster, true)
	err := w.Server.Get(w.t.Context(), client.ObjectKeyFromObject(b), b)
	if apierrors.IsNotFound(err) {
		return nil
	}
	testenv.Must(w.t, err)
	out := []string{}
	for _, e := range b.Spec.Bindings {
		out = append(out, e.ClusterResourceSetName)
	}
	for _, r := range b.OwnerReferences {
		out = append(out, "owner "+r.Name)
	}
	return out
}

// TestUnbind: the entries are removed in the API server, whatever the cache has, before the finalizer is.
func TestUnbind(t *testing.T) {
	for _, stale := range []bool{false, true} {
		deleted := set()
		object.Deleting(deleted)
		w := newWorld(t, deleted, bound("alone", true, "s"), bound("both", true, "other", "s"), bound("unrelated", true, "other"))
		if stale {
			w.Cache.Hide(bound("alone", true), bound("both", true))
		}
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		want := []string{"delete ClusterResourceSetBinding alone", "patch ClusterResourceSetBinding both", "patch ClusterResourceSet s"}
		if diff := cmp.Diff(want, w.Writes); diff != "" {
			t.Errorf("stale %t: writes, -want +got:\n%s", stale, diff)
		}
		got := map[string][]string{"alone": w.entries("alone"), "both": w.entries("both"), "unrelated": w.entries("unrelated")}
		left := map[string][]string{"alone": nil, "both": {"other", "owner other"}, "unrelated": {"other", "owner other"}}
		if diff := cmp.Diff(left, got); diff != "" {
			t.Errorf("stale %t: bindings, -want +got:\n%s", stale, diff)
		}
		if err := w.Server.Get(t.Context(), client.ObjectKeyFromObject(deleted), &addonsv1.ClusterResourceSet{}); !apierrors.IsNotFound(err) {
			t.Errorf("stale %t: the set still exists: %v", stale, err)
		}
	}
}
