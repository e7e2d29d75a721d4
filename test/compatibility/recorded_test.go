package compatibility

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
)

// recorded returns the objects of recorded clusters that are in files which match a pattern, by file.
func recorded(t *testing.T, pattern string) map[string][]json.RawMessage {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(facts(t, "recorded"), pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recorded objects match %s: %v", pattern, err)
	}
	objects := map[string][]json.RawMessage{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var list []json.RawMessage
		if err := json.Unmarshal(content, &list); err != nil {
			t.Fatalf("parse %s: %v", path, err)
		}
		objects[filepath.Base(path)] = list
	}
	return objects
}

// Every recorded object of v1beta2 is read without an unknown field, and written as it was.
func TestRecordedObjectsOfKubeadm(t *testing.T) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{bootstrapv1.AddToScheme, controlplanev1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[schema.GroupVersionKind]int{}
	for _, pattern := range []string{"v1.14.0/*.bootstrap.v1beta2.json", "v1.14.0/*.controlplane.v1beta2.json"} {
		for file, objects := range recorded(t, pattern) {
			for _, raw := range objects {
				kind := metav1.TypeMeta{}
				if err := json.Unmarshal(raw, &kind); err != nil {
					t.Fatal(err)
				}
				object, err := known.New(kind.GroupVersionKind())
				if err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				seen[kind.GroupVersionKind()]++
				unchanged(t, file, raw, object)
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("saw %v, want all four kinds", seen)
	}
}

// unchanged decodes a document into an object, strictly, and encodes it, in both ways in which objects are encoded.
func unchanged(t *testing.T, name string, document []byte, object runtime.Object) {
	t.Helper()
	if problems, err := kjson.UnmarshalStrict(document, object); err != nil || len(problems) > 0 {
		t.Errorf("%s: decode: %v %v", name, err, problems)
	}
	var want, got any
	if err := json.Unmarshal(document, &want); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(encoded, &got)
	}
	if err != nil {
		t.Fatalf("%s: encode: %v", name, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is written differently (-read +written):\n%s", name, diff)
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err == nil {
		encoded, err = json.Marshal(tree)
	}
	if err == nil {
		got = nil
		err = json.Unmarshal(encoded, &got)
	}
	if err != nil {
		t.Fatalf("%s: to unstructured: %v", name, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs as unstructured (-read +written):\n%s", name, diff)
	}
}
