package kinds

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

const annotation = clusterv1.ConversionDataAnnotation

// inMemory finds the version of the kinds of recorded objects' providers.
func inMemory(_ context.Context, kind schema.GroupKind) (string, bool) {
	if kind.Group == "infrastructure.cluster.x-k8s.io" {
		return "v1alpha1", true
	}
	return "v1beta2", true
}

// byName returns all kinds by their name, which has the version of the spoke if that is not v1beta1.
func byName(lookup Lookup) map[string]*lossless.Kind {
	named := map[string]*lossless.Kind{}
	for _, kind := range All(lookup) {
		name := kind.Hub.Kind
		if version := kind.Spoke.Version; version != "v1beta1" && kind.Hub.Kind != "ExtensionConfig" {
			name += " " + version
		}
		named[name] = kind
	}
	return named
}

// converters converts the JSON of any kind, to the hub and from it.
func converters() map[string][2]func(t *testing.T, in object) object {
	functions := map[string][2]func(*testing.T, object) object{}
	for name, kind := range byName(inMemory) {
		functions[name] = [2]func(*testing.T, object) object{
			over(kind.ToHub, kind.Spoke, kind.Hub), over(kind.ToSpoke, kind.Hub, kind.Spoke),
		}
	}
	return functions
}

// empty returns an object of a version for a test.
func empty(version lossless.Version) client.Object {
	if version.New == nil {
		return &unstructured.Unstructured{Object: object{}}
	}
	return version.New()
}

// over makes a conversion of typed objects one of their JSON.
func over(
	convert func(context.Context, client.Object, client.Object) error, from, to lossless.Version,
) func(*testing.T, object) object {
	return func(t *testing.T, in object) object {
		t.Helper()
		src, again, dst := empty(from), empty(from), empty(to)
		for _, o := range []client.Object{src, again} {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(runtime.DeepCopyJSON(in), o); err != nil {
				t.Fatal(err)
			}
		}
		if err := convert(t.Context(), src, dst); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(src, again) {
			t.Errorf("the conversion changed its source (-before +after):\n%s", cmp.Diff(again, src))
		}
		out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(dst)
		if err != nil {
			t.Fatal(err)
		}
		if metadata := lossless.At(out, "metadata"); metadata["creationTimestamp"] == nil {
			delete(metadata, "creationTimestamp")
		}
		return out
	}
}

// pairs returns recorded objects of both versions, spoke and hub, by kind and name.
func pairs(t *testing.T, group string) map[string][2]object {
	t.Helper()
	dir := os.Getenv("CAPI_FACTS_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "..", "shared", "facts")
	}
	dir = filepath.Join(dir, "data", "recorded", "v1.14.0")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the reference data is absent, so nothing was compared: set CAPI_FACTS_DIR to the directory with data/recorded (%v)", err)
	}
	result := map[string][2]object{}
	for i, version := range []string{"v1beta1", "v1beta2"} {
		paths, err := filepath.Glob(filepath.Join(dir, "*."+group+"."+version+".json"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no recorded objects: %v", err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var list []object
			if err := kjson.UnmarshalCaseSensitivePreserveInts(content, &list); err != nil {
				t.Fatal(err)
			}
			for _, item := range list {
				state, _, _ := strings.Cut(filepath.Base(path), ".")
				o := unstructured.Unstructured{Object: item}
				key := state + " " + o.GetKind() + " " + o.GetName() + " " + o.GetResourceVersion()
				pair := result[key]
				pair[i] = item
				result[key] = pair
			}
		}
	}
	return result
}

// recorded returns the recorded pairs of all groups.
func recorded(t *testing.T) map[string][2]object {
	t.Helper()
	all := pairs(t, "bootstrap")
	maps.Copy(all, pairs(t, "controlplane"))
	maps.Copy(all, pairs(t, "cluster"))
	for name, pair := range all {
		if pair[0] == nil || pair[1] == nil {
			delete(all, name) // It changed between the two requests of the recording.
		}
	}
	return all
}

// Recorded objects of one version become those of the other one.
func TestRecordedObjects(t *testing.T) {
	all := recorded(t)
	kinds := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		spoke, hub := all[name][0], all[name][1]
		kind, _ := hub["kind"].(string)
		kinds[kind]++
		convert := converters()[kind]
		t.Run(name, func(t *testing.T) {
			up := convert[0](t, runtime.DeepCopyJSON(spoke))
			forgetOlder(up)
			if diff := cmp.Diff(hub, up); diff != "" {
				if lossless.At(spoke, "metadata", "annotations")[annotation] != nil {
					t.Errorf("hub (-recorded +converted):\n%s", diff)
				}
			}

			got, want := convert[1](t, runtime.DeepCopyJSON(hub)), runtime.DeepCopyJSON(spoke)
			gotData, wantData := take(t, got), take(t, want)
			for _, part := range []string{"spec", "status"} {
				if diff := cmp.Diff(wantData[part], gotData[part]); gotData[part] != nil && wantData != nil && diff != "" {
					t.Errorf("annotation's %s (-recorded +converted):\n%s", part, diff)
				}
				if bare := convert[0](t, got); gotData[part] == nil && !cmp.Equal(hub[part], bare[part]) {
					t.Errorf("%s without annotation (-recorded +converted):\n%s", part, cmp.Diff(hub[part], bare[part]))
				}
			}
			want = normal(t, want, byName(nil)[kind].Spoke.New()) // Our types may have fewer fields.
			delete(lossless.At(want, "metadata"), "creationTimestamp")
			delete(lossless.At(got, "metadata"), "creationTimestamp")
			if diff := cmp.Diff(withoutEmpty(want, present()...), withoutEmpty(got, present()...)); diff != "" {
				t.Errorf("spoke (-recorded +converted):\n%s", diff)
			}
		})
	}
	if len(kinds) < 8 || len(all) < 20 {
		t.Errorf("compared %v, want all kinds", kinds)
	}
}

// forgetOlder removes the annotation that other versions of Cluster API do not have.
func forgetOlder(o object) {
	annotations := lossless.At(o, "metadata", "annotations")
	delete(annotations, older)
	if len(annotations) == 0 {
		delete(lossless.At(o, "metadata"), "annotations")
	}
}

// take removes the annotation of an object, and returns its content.
func take(t *testing.T, o object) object {
	t.Helper()
	annotations := lossless.At(o, "metadata", "annotations")
	raw, found := annotations[annotation].(string)
	delete(annotations, annotation)
	if len(annotations) == 0 {
		delete(lossless.At(o, "metadata"), "annotations")
	}
	if !found {
		return nil
	}
	content := object{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(raw), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// The rules cover the fields of v1beta1 that our types do not have yet: without types, recorded objects become each other completely.
func TestRulesForRecordedObjects(t *testing.T) {
	kinds := byName(inMemory)
	versions := func(kind schema.GroupKind) string {
		version, _ := inMemory(t.Context(), kind)
		return version
	}
	for name, pair := range recorded(t) {
		kind, _ := pair[1]["kind"].(string)
		up, down := runtime.DeepCopyJSON(pair[0]), runtime.DeepCopyJSON(pair[1])
		kinds[kind].Up(up)
		if diff := cmp.Diff(meaning(pair[1]), meaning(up)); diff != "" {
			t.Errorf("%s: hub (-recorded +converted):\n%s", name, diff)
		}
		kinds[kind].Down(down, versions)
		if diff := cmp.Diff(meaning(pair[0]), meaning(down)); diff != "" {
			t.Errorf("%s: spoke (-recorded +converted):\n%s", name, diff)
		}
	}
}

// meaning returns the spec and the status of an object without what is empty, false or zero, which v1beta1 cannot tell from unset.
func meaning(o object) object {
	result := object{"spec": lossless.At(o, "spec"), "status": lossless.At(o, "status")}
	result = withoutZero(content(result, "spec", "status"))
	delete(lossless.At(result, "status", "nodeRef"), "uid")
	return content(result, "spec", "status")
}

// withoutZero removes false and 0, except from what clients define.
func withoutZero(o object) object {
	for name, value := range o {
		switch typed := value.(type) {
		case object:
			withoutZero(typed)
		case []any:
			for _, item := range typed {
				if nested, ok := item.(object); ok {
					withoutZero(nested)
				}
			}
		default:
			if name != "value" && name != "default" && (value == false || value == int64(0) || value == "") {
				delete(o, name)
			}
		}
	}
	return o
}
