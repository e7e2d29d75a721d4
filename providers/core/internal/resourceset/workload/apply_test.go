package workload

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// legacy is the field manager of v1.7.
const legacy = client.FieldOwner("cluster-api-controller-manager")

func configMap(namespace, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: " + namespace + "}\ndata: {" + data + "}\n"
}

// TestReconcile covers what becomes of fields, for objects that were created here and by v1.7.
func TestReconcile(t *testing.T) {
	for _, tc := range []struct {
		reason string
		// before creates the object with the data {kept: old, dropped: old}.
		before func(t *testing.T, c client.Client, text string)
	}{
		{reason: "applied before", before: func(t *testing.T, c client.Client, text string) {
			if p := outcome(t, NewSession(c, nil).Reconcile, text); len(p) > 0 {
				t.Fatal(p)
			}
		}},
		{reason: "created once before", before: func(t *testing.T, c client.Client, text string) {
			if p := outcome(t, NewSession(c, nil).Once, text); len(p) > 0 {
				t.Fatal(p)
			}
		}},
		{reason: "created by v1.7", before: func(t *testing.T, c client.Client, text string) {
			testenv.Must(t, c.Create(t.Context(), objects(t, text)[0].Unstructured, legacy))
		}},
		{reason: "created and patched by v1.7", before: func(t *testing.T, c client.Client, text string) {
			o := objects(t, text)[0]
			raw, err := json.Marshal(o.Object)
			testenv.Must(t, err)
			o.Object["data"] = map[string]any{"kept": "older"}
			testenv.Must(t, c.Create(t.Context(), o.Unstructured, legacy), c.Patch(t.Context(), o.Unstructured, client.RawPatch(types.MergePatchType, raw), legacy))
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c, namespace := cluster(t)
			tc.before(t, c, configMap(namespace, "kept: old, dropped: old, taken: old"))
			current := &corev1.ConfigMap{}
			key := client.ObjectKey{Namespace: namespace, Name: "c"}
			testenv.Must(t, c.Get(t.Context(), key, current))
			users := client.FieldOwner("kubectl-edit")
			change := `{"data":{"added":"user","kept":"user","taken":"user"},"metadata":{"labels":{"users":"yes"}}}`
			testenv.Must(t, c.Patch(t.Context(), current, client.RawPatch(types.MergePatchType, []byte(change)), users))

			if p := outcome(t, NewSession(c, nil).Reconcile, configMap(namespace, "kept: new, more: new")); len(p) > 0 {
				t.Fatal(p)
			}
			testenv.Must(t, c.Get(t.Context(), key, current))
			want := map[string]string{"kept": "new", "more": "new", "added": "user", "taken": "user"}
			if diff := cmp.Diff(want, current.Data); diff != "" || current.Labels["users"] != "yes" {
				t.Errorf("labels %v, data -want +got:\n%s", current.Labels, diff)
			}
			// Once again changes nothing.
			version := current.ResourceVersion
			if p := outcome(t, NewSession(c, nil).Reconcile, configMap(namespace, "kept: new, more: new")); len(p) > 0 {
				t.Fatal(p)
			}
			testenv.Must(t, c.Get(t.Context(), key, current))
			if current.ResourceVersion != version {
				t.Error("applying the same again writes")
			}
		})
	}
}

// TestDefaultsThatCannotBeRemoved: v1.7's client owns the selector of a Job, which the API server sets and clients cannot change.
func TestDefaultsThatCannotBeRemoved(t *testing.T) {
	c, namespace := cluster(t)
	job := func(label string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, namespace: " + namespace + ", labels: {" + label + "}}\n" +
			"spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}\n"
	}
	testenv.Must(t, c.Create(t.Context(), objects(t, job("a: b"))[0].Unstructured, legacy))
	for _, label := range []string{"c: d", "e: f"} {
		if p := outcome(t, NewSession(c, nil).Reconcile, job(label)); len(p) > 0 {
			t.Fatal(p)
		}
	}
	got := &batchv1.Job{}
	testenv.Must(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "j"}, got))
	if got.Labels["e"] != "f" {
		t.Errorf("labels = %v: the manifest is not applied", got.Labels)
	}
}

// TestUnknownFields: v1.7 creates and patches objects with fields that their kind does not have.
func TestUnknownFields(t *testing.T) {
	c, namespace := cluster(t)
	for _, value := range []string{"one", "two"} {
		text := configMap(namespace, "a: "+value) + "unknown: {field: true}\n"
		if p := outcome(t, NewSession(c, nil).Reconcile, text); len(p) > 0 {
			t.Fatal(p)
		}
		current := &corev1.ConfigMap{}
		testenv.Must(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "c"}, current))
		if current.Data["a"] != value {
			t.Errorf("data = %v, want %s", current.Data, value)
		}
	}
}

// TestOnce never changes an object.
func TestOnce(t *testing.T) {
	c, namespace := cluster(t)
	for _, data := range []string{"a: one", "a: two"} {
		if p := outcome(t, NewSession(c, nil).Once, configMap(namespace, data)); len(p) > 0 {
			t.Fatal(p)
		}
	}
	current := &corev1.ConfigMap{}
	testenv.Must(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "c"}, current))
	if current.Data["a"] != "one" || !strings.Contains(current.ManagedFields[0].Manager, FieldManager) {
		t.Errorf("data = %v, managed fields = %v", current.Data, current.ManagedFields)
	}
}
