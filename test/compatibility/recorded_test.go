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

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
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

// Every object that v1.14 shows in v1beta1 is read without an unknown field, and written as it was, except that ready of a
// KubeadmConfig is written when it is true only.
func TestRecordedObjectsOfV1Beta1(t *testing.T) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1beta1.AddToScheme, bootstrapv1beta1.AddToScheme, controlplanev1beta1.AddToScheme,
	} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[schema.GroupVersionKind]int{}
	for file, objects := range recorded(t, "v1.14.0/*.v1beta1.json") {
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
			tree := map[string]any{}
			if err := json.Unmarshal(raw, &tree); err != nil {
				t.Fatal(err)
			}
			if status, ok := tree["status"].(map[string]any); ok && kind.Kind == "KubeadmConfig" && status["ready"] == false {
				delete(status, "ready")
			}
			if raw, err = json.Marshal(tree); err != nil {
				t.Fatal(err)
			}
			unchanged(t, file, raw, object)
		}
	}
	if len(seen) < 10 {
		t.Errorf("saw %v", seen)
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

// Every kind of v1beta2 is registered with its list, and those with conditions let callers read and set them.
func TestKindsOfV1Beta2(t *testing.T) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{bootstrapv1.AddToScheme, controlplanev1.AddToScheme, dockerv1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	var patterns []string
	for _, folder := range []string{"bootstrap-kubeadm", "controlplane-kubeadm", "docker"} {
		patterns = append(patterns, filepath.Join(facts(t, "crds-v1.14"), folder, "*.yaml"))
	}
	for name, definition := range readDefinitions(t, patterns...) {
		version := schema.GroupVersion{Group: text(definition, "spec", "group"), Version: "v1beta2"}
		kind := text(definition, "spec", "names", "kind")
		object, err := known.New(version.WithKind(kind))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := known.New(version.WithKind(kind + "List")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, served := range list(definition, "spec", "versions") {
			status := at(served, "schema", "openAPIV3Schema", "properties", "status", "properties")
			if text(served, "name") == version.Version && at(status, "conditions") != nil {
				hasConditions(t, kind, object, at(status, "deprecated") != nil)
			}
		}
	}
}

// hasConditions checks that conditions are kept, those of v1beta1, too, if the kind has them.
func hasConditions(t *testing.T, kind string, object runtime.Object, deprecated bool) {
	t.Helper()
	current, ok := object.(interface {
		GetConditions() []metav1.Condition
		SetConditions(conditions []metav1.Condition)
	})
	if !ok {
		t.Errorf("%s has no conditions", kind)
		return
	}
	want := []metav1.Condition{{Type: "Ready"}}
	current.SetConditions(want)
	if diff := cmp.Diff(want, current.GetConditions()); diff != "" {
		t.Errorf("%s does not keep its conditions (-want +got):\n%s", kind, diff)
	}
	if !deprecated {
		return
	}
	old, ok := object.(interface {
		GetV1Beta1Conditions() clusterv1.Conditions
		SetV1Beta1Conditions(conditions clusterv1.Conditions)
	})
	if !ok {
		t.Errorf("%s has no conditions of v1beta1", kind)
		return
	}
	if got := old.GetV1Beta1Conditions(); got != nil {
		t.Errorf("%s starts with conditions %v", kind, got)
	}
	wantOld := clusterv1.Conditions{{Type: "Ready"}}
	old.SetV1Beta1Conditions(wantOld)
	if diff := cmp.Diff(wantOld, old.GetV1Beta1Conditions()); diff != "" {
		t.Errorf("%s does not keep its conditions of v1beta1 (-want +got):\n%s", kind, diff)
	}
}
