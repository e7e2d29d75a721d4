package ssa

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Whatever other clients wrote into an object and its managedFields: planning modifies neither object, is deterministic, and
// if it finds no change, neither does the API server's own code.
func FuzzPlan(f *testing.F) {
	type doc = map[string]any
	encode := func(v any) []byte {
		raw, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		return raw
	}
	first := object(f, live)
	managers, _, err := unstructured.NestedSlice(first.Object, "metadata", "managedFields")
	if err != nil {
		f.Fatal(err)
	}
	spec, wanted := encode(first.Object["spec"]), encode(object(f, applied).Object["spec"])
	for _, fields := range []any{
		managers, managers[:1], []any{}, nil, []any{"x", nil}, doc{}, []any{doc{"manager": ours, "operation": "Apply", "apiVersion": "ssa.test/v1", "fieldsV1": doc{"f:spec": doc{"size": doc{}}}}},
		[]any{doc{"manager": ours, "operation": "Apply", "fieldsV1": doc{"f:spec": doc{"f:disks": doc{`k:{"name":"root"}`: doc{}, `k:{"name":`: doc{}, "i:99999999999999999999": doc{}, "v:": doc{}}}}}},
		[]any{doc{"manager": ours, "operation": "Apply", "apiVersion": "ssa.test/v1", "fieldsV1": doc{".": doc{}, "f:spec": doc{".": doc{}, "f:zones": doc{`v:"z1"`: doc{}, "i:-1": doc{}}}}}},
		append(managers[:1:1], managers[0]), []any{doc{"manager": "", "operation": "Update", "apiVersion": "é", "fieldsV1": doc{"f:": doc{}, "f:é": doc{}}}}, []any{doc{"fieldsV1": "x"}},
	} {
		f.Add(encode(fields), spec, wanted)
		f.Add(encode(fields), []byte(`{"size":null,"zones":["z1","z1"],"disks":[{"name":"a"},{"name":"a"}]}`), wanted)
		f.Add(encode(fields), spec, []byte(`{"zones":[],"disks":[{"name":"root"},{"gigabytes":1}],"maybe":null,"endpoint":{}}`))
		f.Add(encode(fields), []byte(`{"size":{"cpu":1},"unknown":[1,{"a":null}]}`), []byte(`{"taints":[{"effect":"NoSchedule"}],"replicas":null}`))
	}
	s := machineSchema(f)
	f.Fuzz(func(t *testing.T, fields, spec, wanted []byte) {
		if len(fields)+len(spec)+len(wanted) > 16<<10 {
			t.Skip("long")
		}
		there := object(t, "metadata: {name: m, namespace: ns, uid: u1, resourceVersion: \"7\"}")
		desired := object(t, "metadata: {name: m, namespace: ns}")
		if !put(there, fields, "metadata", "managedFields") || !put(there, spec, "spec") || !put(desired, wanted, "spec") {
			t.Skip("no objects")
		}
		before, wantedBefore := there.DeepCopy(), desired.DeepCopy()
		diff, err := plan(s, there, desired, ours)
		if d := cmp.Diff([]any{before.Object, wantedBefore.Object}, []any{there.Object, desired.Object}); d != "" {
			t.Fatalf("planning modifies its input (-before +after):\n%s", d)
		}
		again, errAgain := plan(s, there, desired, ours)
		if d := cmp.Diff(diff, again); d != "" || (err == nil) != (errAgain == nil) {
			t.Errorf("the second time: %v, %v (-first +second):\n%s", err, errAgain, d)
		}
		if err != nil || diff.Changed() {
			return
		}
		result, err := serverSideApply(s, there, desired)
		if err != nil {
			return // The server rejects it.
		}
		if d := cmp.Diff(compared(s, there), compared(s, result), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("nothing is to change, but the API server changes (-live +result):\n%s", d)
		}
	})
}

// put sets a field of an object to what is encoded, as an object that was decoded has it.
func put(u *unstructured.Unstructured, encoded []byte, path ...string) bool {
	holder := &unstructured.Unstructured{}
	if holder.UnmarshalJSON(append(append([]byte(`{"kind":"x","v":`), encoded...), '}')) != nil {
		return false
	}
	return unstructured.SetNestedField(u.Object, holder.Object["v"], path...) == nil
}

// serverSideApply is what an API server does: apply, then complete by the schema.
func serverSideApply(s *kindSchema, live, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	version := s.kind.GroupVersion()
	reset := map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(version.String()): fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status"))),
	}
	manager, err := managedfields.NewDefaultCRDFieldManager(ofSchema{s}, asIs{}, asIs{}, asIs{}, s.kind, version, "", reset)
	if err != nil {
		return nil, err
	}
	made, err := manager.Apply(live.DeepCopy(), desired.DeepCopy(), ours, true)
	if err != nil {
		return nil, err
	}
	result, ok := made.(*unstructured.Unstructured)
	if !ok {
		return nil, errors.New("not an object")
	}
	result = result.DeepCopy()
	defaulting.PruneNonNullableNullsWithoutDefaults(result.Object, s.structural)
	defaulting.Default(result.Object, s.structural)
	return result, nil
}

// ofSchema implements managedfields.TypeConverter.
type ofSchema struct{ *kindSchema }

func (c ofSchema) ObjectToTyped(o runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, errors.New("not an object")
	}
	return c.mergeable.FromUnstructured(u.Object, opts...)
}

func (c ofSchema) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	content, ok := v.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, errors.New("not an object")
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// asIs is conversion, defaulting and creation of a kind with one version.
type asIs struct{}

func (asIs) Convert(_, _, _ any) error { return errors.New("there is one version") }

func (asIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (asIs) ConvertFieldLabel(_ runtimeschema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (asIs) Default(runtime.Object) {}

func (asIs) New(kind runtimeschema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}
