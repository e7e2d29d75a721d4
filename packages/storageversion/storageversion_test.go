package storageversion

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// crd returns a CustomResourceDefinition with versions; the first is the storage version, and those with a minus are not
// served.
func crd(stored []string, scope string, versions ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": "x.example", "scope": scope, "names": map[string]any{"kind": "Thing"},
	}}}
	o.SetName("things.x.example")
	var list []any
	for i, v := range versions {
		served := v[0] != '-'
		if !served {
			v = v[1:]
		}
		list = append(list, map[string]any{"name": v, "served": served, "storage": i == 0})
	}
	_ = unstructured.SetNestedSlice(o.Object, list, "spec", "versions")
	_ = unstructured.SetNestedStringSlice(o.Object, stored, "status", "storedVersions")
	return o
}

func TestPlan(t *testing.T) {
	migration := func(outdated ...string) *Migration {
		return &Migration{Definition: "things.x.example", Kind: schema.GroupVersionKind{Group: "x.example", Version: "v1", Kind: "Thing"}, Outdated: outdated}
	}
	tests := []struct {
		reason        string
		live, desired *unstructured.Unstructured
		want          *Migration
		err           string
	}{
		{reason: "Objects in the storage version stay.", live: crd([]string{"v1"}, "Namespaced", "v1"), desired: crd(nil, "Namespaced", "v1", "v2")},
		{reason: "Objects may be in a version that goes.", live: crd([]string{"v1alpha1", "v1"}, "Namespaced", "v1", "-v1alpha1"), desired: crd(nil, "Namespaced", "v1"), want: migration("v1alpha1")},
		{reason: "A version that is no longer served will go.", live: crd([]string{"v1alpha1", "v1"}, "Namespaced", "v1", "v1alpha1"), desired: crd(nil, "Namespaced", "v1", "-v1alpha1"), want: migration("v1alpha1")},
		{reason: "A version that is served can be stored.", live: crd([]string{"v1alpha1", "v1"}, "Namespaced", "v1", "v1alpha1"), desired: crd(nil, "Namespaced", "v1", "v1alpha1")},
		{reason: "The new definition may store another version.", live: crd([]string{"v1"}, "Namespaced", "v1"), desired: crd(nil, "Namespaced", "v2", "v1")},
		{
			reason: "The storage version cannot go.", live: crd([]string{"v1"}, "Namespaced", "v1"), desired: crd(nil, "Namespaced", "v3", "v2"),
			err: "CustomResourceDefinition things.x.example stores objects in version v1, which the new one does not have: first upgrade the provider to a version whose CustomResourceDefinition has both v1 and v3, v2",
		},
		{
			reason: "A scope cannot change.", live: crd([]string{"v1"}, "Namespaced", "v1"), desired: crd(nil, "Cluster", "v1"),
			err: "CustomResourceDefinition things.x.example has scope Namespaced, and the new one Cluster, which Kubernetes does not allow: choose another version of the provider",
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := Plan(tc.live, tc.desired)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tc.err, text); diff != "" {
				t.Errorf("Plan(): error: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Plan(): -want +got:\n%s", diff)
			}
		})
	}
}

const simple = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusters.simple.example}
spec:
  group: simple.example
  names: {kind: Cluster, listKind: ClusterList, plural: clusters, singular: cluster}
  scope: Namespaced
  versions:
  - {name: v1alpha3, served: false, storage: false, schema: &schema {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1alpha4, served: false, storage: false, schema: *schema}
  - {name: v1beta1, served: true, storage: true, schema: *schema}
`

// TestRun stores objects in versions that are no longer served, on a real API server.
func TestRun(t *testing.T) {
	e := server.Start(t)
	definitions := map[string][]byte{"simple": []byte(simple)}
	dir := os.Getenv("CAPI_FACTS_DIR")
	if dir == "" {
		dir = filepath.Join(e.Root, "..", "shared", "facts")
	}
	// The published definition of v1.7, if the reference data is present.
	if raw, err := os.ReadFile(filepath.Join(dir, "data", "crds-v1.7", "core", "cluster.x-k8s.io_clusters.yaml")); err == nil {
		definitions["v1.7"] = raw
	}
	for name, raw := range definitions {
		t.Run(name, func(t *testing.T) { testRun(t, e, raw) })
	}
}

func testRun(t *testing.T, e *testenv.Env, raw []byte) {
	objects, err := manifest.Parse(raw)
	testenv.Must(t, err)
	published := &objects[0]
	namespace := e.Namespace(t)
	group, _, _ := unstructured.NestedString(published.Object, "spec", "group")
	var found []*unstructured.Unstructured
	for _, version := range []string{"v1alpha3", "v1alpha4", "v1beta1"} {
		store(t, e, published, version)
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(group + "/" + version)
		o.SetKind("Cluster")
		o.SetNamespace(namespace)
		o.SetName("stored-in-" + version)
		testenv.Eventually(t, "an object can be created in "+version, func() error { return e.Client.Create(t.Context(), o.DeepCopy()) })
		o.SetAPIVersion(group + "/v1beta1")
		found = append(found, o)
	}
	live := store(t, e, published, "")
	if diff := cmp.Diff([]string{"v1alpha3", "v1alpha4", "v1beta1"}, Stored(live)); diff != "" {
		t.Fatalf("status.storedVersions: -want +got:\n%s", diff)
	}
	for _, o := range found {
		testenv.Must(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	}
	m, err := Plan(live, published)
	testenv.Must(t, err)
	for _, want := range [][]bool{{true, true, false}, {false, false, false}} {
		testenv.Must(t, m.Run(t.Context(), e.Client, nil))
		var written []bool
		for _, o := range found {
			before := o.GetResourceVersion()
			testenv.Must(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
			written = append(written, o.GetResourceVersion() != before)
		}
		if diff := cmp.Diff(want, written); diff != "" {
			t.Errorf("which objects were stored again: -want +got:\n%s", diff)
		}
	}
	testenv.Must(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live))
	if diff := cmp.Diff([]string{"v1beta1"}, Stored(live)); diff != "" {
		t.Errorf("status.storedVersions: -want +got:\n%s", diff)
	}
}

// store writes the definition such that objects are stored in a version, which is served then, and returns it; "" stands for
// the published one.
func store(t *testing.T, e *testenv.Env, published *unstructured.Unstructured, version string) *unstructured.Unstructured {
	t.Helper()
	o := published.DeepCopy()
	versions, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
	testenv.Must(t, err)
	for _, item := range versions {
		if v := item.(map[string]any); version != "" {
			v["storage"] = v["name"] == version
			v["served"] = v["storage"]
		}
	}
	testenv.Must(t, unstructured.SetNestedSlice(o.Object, versions, "spec", "versions"))
	live := manifest.Identity(o)
	err = e.Client.Get(t.Context(), client.ObjectKeyFromObject(o), live)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		testenv.Must(t, e.Client.Create(t.Context(), o))
		return o
	}
	o.SetResourceVersion(live.GetResourceVersion())
	testenv.Must(t, e.Client.Update(t.Context(), o))
	return o
}

func TestPlanTurn(t *testing.T) {
	// definition returns a definition with two versions, of which one stores new objects.
	definition := func(group, kind, older, stores, strategy string, stored ...string) *unstructured.Unstructured {
		o := crd(stored, "Namespaced", older, "v1beta2")
		storeIn(o, stores)
		spec := o.Object["spec"].(map[string]any)
		spec["group"], spec["names"], spec["conversion"] = group, map[string]any{"kind": kind}, map[string]any{"strategy": strategy}
		return o
	}
	machine := func(stores, strategy string, stored ...string) *unstructured.Unstructured {
		return definition("cluster.x-k8s.io", "Machine", "v1beta1", stores, strategy, stored...)
	}
	config := func(stores string, stored ...string) *unstructured.Unstructured {
		return definition("runtime.cluster.x-k8s.io", "ExtensionConfig", "v1alpha1", stores, "Webhook", stored...)
	}
	widget := definition("example.com", "Widget", "v1beta1", "v1beta1", "None", "v1beta1")
	unserved := machine("v1beta1", "Webhook", "v1beta1")
	unserved.Object["spec"].(map[string]any)["versions"].([]any)[1].(map[string]any)["served"] = false
	for _, tt := range []struct {
		reason       string
		live         *unstructured.Unstructured
		newest, want string
		err          string
	}{
		{"it stores the older version", machine("v1beta1", "Webhook", "v1beta1"), "v1beta2", "v1beta2", ""},
		{"it stores the newer version", machine("v1beta2", "Webhook", "v1beta2"), "v1beta1", "v1beta1", ""},
		{"an interruption left objects in the other version", machine("v1beta2", "Webhook", "v1beta1", "v1beta2"), "v1beta2", "v1beta2", ""},
		{"it is complete", machine("v1beta2", "Webhook", "v1beta2"), "v1beta2", "", ""},
		{"nothing converts", machine("v1beta1", "None", "v1beta1"), "v1beta2", "", `spec.conversion.strategy "None"`},
		{"another project's kind", widget, "v1beta2", "", ""},
		{"the version is not served", unserved, "v1beta2", "", ""},
		{"a kind has no v1beta1", config("v1beta2", "v1beta2"), "v1beta1", "v1alpha1", ""},
		{"a kind without v1beta1 stores the version before it", config("v1alpha1", "v1alpha1"), "v1beta1", "", ""},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			turn, err := PlanTurn(tt.live, tt.newest)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("got %+v, %v", turn, err)
			}
			got := ""
			if turn != nil {
				got = turn.Kind.Version
			}
			if got != tt.want {
				t.Errorf("it turns to version %q, want %q", got, tt.want)
			}
		})
	}
}
