package ssa

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

func TestNoops(t *testing.T) {
	d := define(definition(t, machineCRD))
	schemas := newSchemas(d)
	kind := runtimeschema.GroupVersionKind{Group: "ssa.test", Version: "v1", Kind: "Machine"}
	schema := func() *kindSchema {
		s, err := schemas.get(t.Context(), kind)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := schema()
	for crd := range d.crds {
		d.crds[crd].Generation++
	}
	newer := schema()
	changed := func(base string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u := object(t, base)
		u.SetUID("uid")
		u.SetResourceVersion("1")
		if change != nil {
			change(u)
		}
		return u
	}
	endpoint := []Option{LeaveZero([]string{"spec", "endpoint"})}
	for name, c := range map[string]struct {
		reason  string
		schema  *kindSchema
		live    *unstructured.Unstructured
		desired *unstructured.Unstructured
		options []Option
		want    bool
	}{
		"Same":       {"nothing is different", first, changed(live, nil), changed(applied, nil), nil, true},
		"Touched":    {"the object was written", first, changed(live, func(u *unstructured.Unstructured) { u.SetResourceVersion("2") }), changed(applied, nil), nil, false},
		"Replaced":   {"another object has the name", first, changed(live, func(u *unstructured.Unstructured) { u.SetUID("other") }), changed(applied, nil), nil, false},
		"OtherWish":  {"something else is wanted", first, changed(live, nil), changed(applied, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) }), nil, false},
		"OtherWay":   {"it is wanted in another way", first, changed(live, nil), changed(applied, nil), endpoint, false},
		"OtherKind":  {"a new definition may know more fields", newer, changed(live, nil), changed(applied, nil), nil, false},
		"NotThere":   {"a missing object must be created", first, nil, changed(applied, nil), nil, false},
		"NeverSaved": {"an object that is in no API server has no version", first, changed(live, func(u *unstructured.Unstructured) { u.SetResourceVersion("") }), changed(applied, nil), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := NewApplier(nil, schemas, ours)
			v, noop, err := a.judge(first, changed(live, nil), changed(applied, nil), nil)
			if noop || err != nil {
				t.Fatalf("noop = %t, err = %v before anything was compared", noop, err)
			}
			a.rememberNoop(changed(live, nil), v)
			if _, noop, err = a.judge(c.schema, c.live, c.desired, c.options); noop != c.want || err != nil {
				t.Errorf("%s: noop = %t, err = %v", c.reason, noop, err)
			}
		})
	}
}

// TestPlanIsRemembered has an object that is as it shall be: the second answer is the first one, unless it changes.
func TestPlanIsRemembered(t *testing.T) {
	a := NewApplier(nil, newSchemas(define(definition(t, machineCRD))), ours)
	is, wish := object(t, live), object(t, applied)
	is.SetUID("uid")
	is.SetResourceVersion("1")
	for range 2 {
		if diff, err := a.Plan(t.Context(), is, wish); err != nil || diff.Changed() {
			t.Fatalf("diff = %+v, err = %v; want none", diff, err)
		}
	}
	if a.noops.Len() != 1 {
		t.Errorf("%d verdicts are kept, want 1", a.noops.Len())
	}
	is.SetResourceVersion("2")
	is.Object["spec"].(map[string]any)["size"] = "other"
	for range 2 {
		if diff, err := a.Plan(t.Context(), is, wish); err != nil || !diff.SpecChanged() {
			t.Errorf("diff = %+v, err = %v; want a change of spec, every time", diff, err)
		}
	}
}
