package topology

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
)

// TestRecordedTopologiesAreKept: the topology controller changes no spec of objects that Cluster API v1.7.0 or v1.14.0 created, and creates
// none: a template of another name would replace all Machines of it.
func TestRecordedTopologiesAreKept(t *testing.T) {
	for corpus, states := range recorded.Corpus(t, "../../../..") {
		if strings.HasSuffix(corpus, "v1.14.0 in v1beta1") {
			continue // The same objects as in v1beta2.
		}
		for _, state := range states {
			atRest := state.Name == "4-upgraded" || state.OfUser && state.Name == "2-at-rest" // The objects of the former have been changed.
			if !atRest || !state.Cluster.Spec.Topology.IsDefined() {
				continue
			}
			t.Run(corpus+" "+state.Name, func(t *testing.T) {
				w := newWorld(t)
				w.restore(state.Objects)
				w.reconciledClass(state.Cluster.Spec.Topology.ClassRef.Name)
				c := &clusterv1.Cluster{}
				testenv.Must(t, w.Get(t.Context(), w.key(state.Cluster.Name), c))
				w.waitCached(c)
				before := w.specs(state.Objects)
				for range 2 {
					for _, request := range w.reconciled(c) {
						if strings.HasPrefix(request, "POST") || strings.HasPrefix(request, "DELETE") {
							t.Errorf("the controller sends %s", request)
						}
					}
				}
				if diff := cmp.Diff(before, w.specs(state.Objects)); diff != "" {
					t.Errorf("specs: -before +after:\n%s", diff)
				}
			})
		}
	}
}

// restore creates recorded objects as a backup does: with other UIDs, their field managers, and their status. The ClusterClass controller
// works meanwhile.
func (w *world) restore(objects []*unstructured.Unstructured) {
	w.t.Helper()
	uids := map[types.UID]types.UID{}
	for _, recorded := range objects {
		o := w.inStoredVersion(recorded)
		o.SetUID("")
		o.SetResourceVersion("")
		o.SetOwnerReferences(nil)
		testenv.Must(w.t, w.Create(w.t.Context(), o))
		uids[recorded.GetUID()] = o.GetUID()
	}
	for _, recorded := range objects {
		o := w.inStoredVersion(recorded)
		if status, ok := o.Object["status"]; ok {
			// Templates of this provider have no such subresource.
			testenv.Must(w.t, client.IgnoreNotFound(w.Status().Patch(w.t.Context(), o.DeepCopy(), merge(w.t, map[string]any{"status": status}))))
		}
		owners := recorded.GetOwnerReferences()
		for i := range owners {
			owners[i].UID = uids[owners[i].UID]
		}
		if len(owners) > 0 {
			testenv.Must(w.t, w.Patch(w.t.Context(), o, merge(w.t, map[string]any{"metadata": map[string]any{"ownerReferences": owners}})))
		}
	}
}

func merge(t testing.TB, change any) client.Patch {
	t.Helper()
	content, err := json.Marshal(change)
	testenv.Must(t, err)
	return client.RawPatch(types.MergePatchType, content)
}

// inStoredVersion returns a recorded object in this namespace, and in the version that is stored.
func (w *world) inStoredVersion(object *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	content, err := object.MarshalJSON()
	testenv.Must(w.t, err)
	recorded := &unstructured.Unstructured{}
	testenv.Must(w.t, recorded.UnmarshalJSON(bytes.ReplaceAll(content, []byte(`"namespace":"default"`), []byte(`"namespace":"`+w.namespace+`"`))))
	of := recorded.GroupVersionKind()
	if conversion.Shared().Versions(of.GroupKind()) == nil {
		return recorded
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: of.Group, Version: clusterv1.GroupVersion.Version, Kind: of.Kind})
	testenv.Must(w.t, conversion.Shared().Convert(w.t.Context(), recorded, o))
	return o
}

// specs returns the specs of all objects, by kind and name.
func (w *world) specs(objects []*unstructured.Unstructured) map[string]any {
	w.t.Helper()
	found := map[string]any{}
	for _, recorded := range objects {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(recorded.GroupVersionKind())
		testenv.Must(w.t, w.Get(w.t.Context(), w.key(recorded.GetName()), o))
		if o.GetKind() == "MachineHealthCheck" {
			// Without a limit it is 100 %, which v1.7 and ours write.
			unstructured.RemoveNestedField(o.Object, "spec", "remediation")
		}
		found[o.GetKind()+" "+o.GetName()] = o.Object["spec"]
	}
	return found
}
