package core

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// converter returns a converter for the providers of the recorded objects.
func converter() Converter {
	return Converter{Version: func(kind schema.GroupKind) (string, bool) {
		if kind.Group == "infrastructure.cluster.x-k8s.io" {
			return "v1alpha1", true
		}
		return "v1beta2", true
	}}
}

// pair is an object as recorded in both versions.
type pair struct {
	old, hub Object
}

// recordedPairs returns the pairs of a file.
func recordedPairs(t *testing.T, hubFile string) map[string]pair {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1beta1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	pairs := map[string]pair{}
	for _, file := range []string{hubFile, strings.Replace(hubFile, ".v1beta2.", ".v1beta1.", 1)} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var objects []json.RawMessage
		if err := json.Unmarshal(content, &objects); err != nil {
			t.Fatal(err)
		}
		for _, raw := range objects {
			var meta metav1.PartialObjectMetadata
			if err := json.Unmarshal(raw, &meta); err != nil {
				t.Fatal(err)
			}
			created, err := s.New(meta.GroupVersionKind())
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(raw, created); err != nil {
				t.Fatal(err)
			}
			p, object := pairs[meta.Kind+" "+meta.Name], created.(Object)
			if file == hubFile {
				p.hub = object
			} else {
				p.old = object
			}
			pairs[meta.Kind+" "+meta.Name] = p
		}
	}
	return pairs
}

// eachPair runs a test for every recorded pair. Some objects changed while they were recorded, so that the two do not belong together.
func eachPair(t *testing.T, test func(t *testing.T, p pair)) {
	t.Helper()
	dir := os.Getenv("CAPI_FACTS_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "facts")
	}
	files, err := filepath.Glob(filepath.Join(dir, "data", "recorded", "v1.14.0", "*.cluster.v1beta2.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the reference data is absent, so nothing was compared: set CAPI_FACTS_DIR to the directory with data/recorded")
	}
	for _, file := range files {
		for name, p := range recordedPairs(t, file) {
			if p.old == nil || p.hub == nil || p.old.GetResourceVersion() != p.hub.GetResourceVersion() {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".cluster.v1beta2.json")+"/"+name, func(t *testing.T) { test(t, p) })
		}
	}
}

// TestRecordedDown compares what Cluster API v1.14 returned as v1beta1 with our translation of v1beta2.
func TestRecordedDown(t *testing.T) {
	eachPair(t, func(t *testing.T, p pair) {
		got, err := converter().Down(p.hub)
		if err != nil {
			t.Fatal(err)
		}
		kept, wanted := got.GetAnnotations()[clusterv1.ConversionDataAnnotation], p.old.GetAnnotations()[clusterv1.ConversionDataAnnotation]
		if wanted != "" {
			if diff := cmp.Diff(parsed(t, wanted), parsed(t, kept)); diff != "" {
				t.Errorf("annotations differ (-recorded +ours):\n%s", diff)
			}
		}
		forget(got)
		forget(p.old)
		p.old.SetManagedFields(nil)
		got.SetManagedFields(nil)
		if diff := cmp.Diff(parsed(t, encoded(t, p.old)), parsed(t, encoded(t, got))); diff != "" {
			t.Errorf("objects differ (-recorded +ours):\n%s", diff)
		}
	})
}

// TestRecordedUp shows that reading an object as v1beta1 and writing it back changes nothing.
func TestRecordedUp(t *testing.T) {
	eachPair(t, func(t *testing.T, p pair) {
		old, err := converter().Down(p.hub)
		if err != nil {
			t.Fatal(err)
		}
		got, err := converter().Up(old)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parsed(t, encoded(t, p.hub)), parsed(t, encoded(t, got))); diff != "" {
			t.Errorf("objects differ (-recorded +ours):\n%s", diff)
		}
	})
}

// TestRecordedSpecs compares specs that clients of v1beta1 write, without any annotation, with those of v1beta2.
func TestRecordedSpecs(t *testing.T) {
	eachPair(t, func(t *testing.T, p pair) {
		forget(p.old)
		if m, ok := p.hub.(*clusterv1.Machine); ok {
			m.Spec.ReadinessGates = nil // Our v1beta1 has no field for them, so that only the annotation has them.
		}
		got, err := converter().Up(p.old)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(specOf(p.hub), specOf(got)); diff != "" {
			t.Errorf("specs differ (-recorded +ours):\n%s", diff)
		}
	})
}

func specOf(o Object) any { return reflect.ValueOf(o).Elem().FieldByName("Spec").Interface() }

func encoded(t *testing.T, o Object) string {
	t.Helper()
	content, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
