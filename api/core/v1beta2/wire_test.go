package v1beta2

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestRecordedObjects decodes every recorded object of Cluster API v1.14 without unknown fields, and encodes it back unchanged.
func TestRecordedObjects(t *testing.T) {
	dir := os.Getenv("CAPI_FACTS_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "facts")
	}
	files, err := filepath.Glob(filepath.Join(dir, "data", "recorded", "v1.14.0", "*.cluster.v1beta2.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skipf("the reference data is absent, so nothing was compared: set CAPI_FACTS_DIR to the directory with data/recorded")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var objects []json.RawMessage
			if err := json.Unmarshal(content, &objects); err != nil {
				t.Fatal(err)
			}
			for _, object := range objects {
				keepsObject(t, object)
			}
		})
	}
}

// keepsObject fails the test if an object changes when it is decoded and encoded.
func keepsObject(t *testing.T, content []byte) {
	t.Helper()
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(content, &meta); err != nil {
		t.Fatal(err)
	}
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	object, err := s.New(meta.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(object); err != nil {
		t.Errorf("%s %s: %v", meta.Kind, meta.Name, err)
		return
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed(t, string(content)), parsed(t, string(encoded))); diff != "" {
		t.Errorf("%s %s changes (-recorded +encoded):\n%s", meta.Kind, meta.Name, diff)
	}
}

// TestEmptyObjectsOnTheWire shows that no field is written that was not set, required or not: an empty object would be rejected
// where the field is missing, and not for the zero value in it.
func TestEmptyObjectsOnTheWire(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds() {
		object, err := s.New(GroupVersion.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parsed(t, `{"metadata":{}}`), parsed(t, string(data))); diff != "" {
			t.Errorf("an empty %s (-want +got):\n%s", kind, diff)
		}
	}
}

// TestExplicitZeroesOnTheWire shows that zero and false are kept where they differ from an absent field.
func TestExplicitZeroesOnTheWire(t *testing.T) {
	tests := map[string]struct {
		reason string
		object any
		text   string
	}{
		"Paused": {
			reason: "a Cluster that is explicitly not paused",
			object: &Cluster{},
			text:   `{"metadata":{},"spec":{"paused":false}}`,
		},
		"Replicas": {
			reason: "none desired, none there",
			object: &MachineSet{},
			text: `{"metadata":{},"spec":{"clusterName":"c","replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"clusterName":"c"}}},
				"status":{"replicas":0,"readyReplicas":0}}`,
		},
		"EmptyDataSecretName": {
			reason: "infrastructure that needs no bootstrap data",
			object: &MachineSpec{},
			text:   `{"clusterName":"c","bootstrap":{"dataSecretName":""}}`,
		},
		"Timeouts": {
			reason: "0 disables the check of Nodes that do not appear",
			object: &MachineHealthCheckSpec{},
			text:   `{"clusterName":"c","selector":{"matchLabels":{"a":"b"}},"checks":{"nodeStartupTimeoutSeconds":0}}`,
		},
		"Variables": {
			reason: "a variable may be false or null",
			object: &Topology{},
			text:   `{"classRef":{"name":"c"},"version":"v1.34.0","variables":[{"name":"a","value":false},{"name":"b","value":null}]}`,
		},
		"Required": {
			reason: "a variable that is not required",
			object: &ClusterClassVariable{},
			text:   `{"name":"a","required":false,"schema":{"openAPIV3Schema":{"type":"boolean","default":false}}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := json.Unmarshal([]byte(tc.text), tc.object); err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(tc.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parsed(t, tc.text), parsed(t, string(data))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSchemeKnowsEveryKind(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds() {
		object, err := s.New(GroupVersion.WithKind(kind))
		if err != nil {
			t.Errorf("kind %s: %v", kind, err)
			continue
		}
		if _, err := s.New(GroupVersion.WithKind(kind + "List")); err != nil {
			t.Errorf("list of %s: %v", kind, err)
		}
		keepsConditions(t, kind, object)
	}
}

// keepsConditions fails the test if an object does not return the conditions that were set.
func keepsConditions(t *testing.T, kind string, object runtime.Object) {
	t.Helper()
	conditioned, ok := object.(interface {
		metav1.Object
		GetConditions() []metav1.Condition
		SetConditions(conditions []metav1.Condition)
		GetV1Beta1Conditions() Conditions
		SetV1Beta1Conditions(conditions Conditions)
	})
	if !ok {
		t.Errorf("kind %s has no conditions", kind)
		return
	}
	if got := conditioned.GetV1Beta1Conditions(); got != nil {
		t.Errorf("an empty %s has conditions: %v", kind, got)
	}
	want, wantOld := []metav1.Condition{{Type: ReadyCondition, Status: "True"}}, Conditions{{Type: ReadyCondition, Status: "False"}}
	conditioned.SetConditions(want)
	conditioned.SetV1Beta1Conditions(wantOld)
	if diff := cmp.Diff(want, conditioned.GetConditions()); diff != "" {
		t.Errorf("kind %s does not keep its conditions (-want +got):\n%s", kind, diff)
	}
	if diff := cmp.Diff(wantOld, conditioned.GetV1Beta1Conditions()); diff != "" {
		t.Errorf("kind %s does not keep its conditions of v1beta1 (-want +got):\n%s", kind, diff)
	}
}

// kinds returns all kinds of the package that are served.
func kinds() []string {
	return []string{
		ClusterKind, ClusterClassKind, MachineKind, MachineSetKind, MachineDeploymentKind, MachinePoolKind, MachineHealthCheckKind,
	}
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
