package replace

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/replace/journal"
)

func definition(name, kind string, stored []any, versions ...any) unstructured.Unstructured {
	o := unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": manifest.KindCRD,
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"group": "", "names": map[string]any{"kind": kind}, "versions": versions},
	}}
	if stored != nil {
		o.Object["status"] = map[string]any{"storedVersions": stored}
	}
	return o
}

func version(name string, storage bool) map[string]any {
	return map[string]any{"name": name, "served": true, "storage": storage}
}

// TestRestoreDefinitions: definitions with which objects would be lost stay, and the notes say so. The kinds are known to the
// fake client, which can only list metadata of such.
func TestRestoreDefinitions(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := clusterctlv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p := clusterctlv1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cluster-api"}, ProviderName: "cluster-api", Type: "CoreProvider", Version: "v1.0.0"}
	changedNow, storedNow := definition("a.x.example", "A", []any{"v1"}, version("v1", true), version("v2", false)), definition("b.x.example", "B", []any{"v1", "v2"}, version("v1", false), version("v2", true))
	usedNow, unusedNow := definition("used.x.example", "ConfigMap", nil, version("v1", true)), definition("unused.x.example", "Secret", nil, version("v1", true))
	used := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}}
	recorded := p.DeepCopy()
	recorded.Version = "v2.0.0"
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(recorded, &changedNow, &storedNow, &usedNow, &unusedNow, used).Build()
	entry := &journal.Entry{
		Provider: p, Version: "v2.0.0",
		Objects: []unstructured.Unstructured{definition("a.x.example", "A", nil, version("v1", true)), definition("b.x.example", "B", nil, version("v1", true))},
		Targets: identities([]unstructured.Unstructured{changedNow, storedNow, usedNow, unusedNow}),
	}
	u := &Replacer{Client: c, Writer: &apply.Writer{Client: c, Backoff: wait.Backoff{Duration: time.Millisecond, Steps: 2}}, Timeout: time.Second}
	notes, err := u.RollBack(t.Context(), entry)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"the new CustomResourceDefinition b.x.example stays, because objects may be stored in version v2",
		"the new CustomResourceDefinition used.x.example stays, because there are objects of its kind",
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes: -want +got:\n%s", diff)
	}
	left := map[string]int{}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(changedNow.GroupVersionKind())
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Items {
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		left[o.GetName()] = len(versions)
	}
	if diff := cmp.Diff(map[string]int{"a.x.example": 1, "b.x.example": 2, "used.x.example": 1}, left); diff != "" {
		t.Errorf("versions of definitions: -want +got:\n%s", diff)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(recorded), recorded); err != nil || recorded.Version != "v1.0.0" {
		t.Errorf("the inventory has %s, %v", recorded.Version, err)
	}
}
