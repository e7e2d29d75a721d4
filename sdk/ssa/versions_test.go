package ssa

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// renamed is a kind that has spec.size in v1, and spec.width in v2, which is stored.
type renamed struct{}

func (renamed) StoredKind(_ context.Context, kind schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	return kind.GroupKind().WithVersion("v2"), nil
}

func (r renamed) Applied(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return r.In(ctx, "v2", u)
}

func (renamed) In(_ context.Context, version string, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if u.GroupVersionKind().Version == version {
		return u, nil
	}
	out, names := u.DeepCopy(), map[string]string{"size": "width", "width": "size"}
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	for name, value := range spec {
		delete(spec, name)
		spec[names[name]] = value
	}
	out.SetGroupVersionKind(u.GroupVersionKind().GroupKind().WithVersion(version))
	return out, unstructured.SetNestedMap(out.Object, spec, "spec")
}

const renamedCRD = `
metadata: {name: machines.ssa.test, uid: "1", generation: 1}
spec:
  group: ssa.test
  names: {kind: Machine, plural: machines}
  scope: Namespaced
  versions:
  - {name: v1, served: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string}}}}}}}
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {width: {type: string}}}}}}}
`

// What is kept or previewed has the fields of its version, whatever is stored.
func TestVersionsThatDiffer(t *testing.T) {
	a := NewApplier(nil, newSchemas(define(definition(t, renamedCRD))), ours)
	a.versions = renamed{}
	live := object(t, `
metadata:
  name: m
  namespace: ns
  uid: u1
  resourceVersion: "7"
  managedFields:
  - {manager: `+ours+`, operation: Apply, apiVersion: ssa.test/v2, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:width": {}}}}
spec: {size: big}
`)
	desired := object(t, "metadata: {name: m, namespace: ns, labels: {a: b}}\nspec: {size: small}\n")
	kept, err := a.Keep(t.Context(), live, desired)
	if err != nil {
		t.Fatal(err)
	}
	wantKept := map[string]any{
		"apiVersion": "ssa.test/v2", "kind": "Machine", "spec": map[string]any{"width": "big"},
		"metadata": map[string]any{"name": "m", "namespace": "ns", "labels": map[string]any{"a": "b"}},
	}
	if diff := cmp.Diff(wantKept, kept.Object); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if diff, err := a.Plan(t.Context(), live, kept); err != nil || diff.SpecChanged() || len(diff.Metadata) == 0 {
		t.Errorf("applying what is kept changes metadata alone: %+v, %v", diff, err)
	}
	preview, err := a.Preview(t.Context(), live, desired)
	if err != nil {
		t.Fatal(err)
	}
	if spec := preview.Object["spec"]; preview.GetAPIVersion() != "ssa.test/v1" || !cmp.Equal(spec, map[string]any{"size": "small"}) {
		t.Errorf("previewed: %v", preview.Object)
	}
	if diff, err := a.Plan(t.Context(), live, object(t, "metadata: {name: m, namespace: ns}\nspec: {size: big}\n")); err != nil || diff.Changed() {
		t.Errorf("nothing changes: %+v, %v", diff, err)
	}
}
