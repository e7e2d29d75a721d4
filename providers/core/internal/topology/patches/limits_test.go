package patches

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func rendering(template string) clusterv1.JSONPatch {
	return clusterv1.JSONPatch{Op: "add", Path: "/spec/template/spec/x", ValueFrom: &clusterv1.JSONPatchValue{Template: template}}
}

func times(n int, change clusterv1.JSONPatch) []clusterv1.JSONPatch {
	all := make([]clusterv1.JSONPatch, n)
	for i := range all {
		all[i] = change
	}
	return all
}

// bounded expects run to return an error without allocating much memory.
func bounded(t *testing.T, want string, run func() error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := run()
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("err = %.300v, want an error with %q", err, want)
	}
	if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 1024 {
		t.Errorf("allocated %d MiB", allocated)
	}
}

// The cost of any patch is bounded, and the error says where the limit was exceeded.
func TestPatchesAreBounded(t *testing.T) {
	big := "big"
	const where = `patch "p" for KubeadmControlPlaneTemplate default/cp (control plane): `
	for _, tc := range []struct {
		reason, enabledIf string
		changes           []clusterv1.JSONPatch
		want              string
	}{
		{"a value of gigabytes", "true", []clusterv1.JSONPatch{rendering(`{{ repeat 2000000000 "x" }}`)},
			where + "definition 0, jsonPatch 0 (add /spec/template/spec/x): the template exceeds the limit"},
		{"an endless condition", `{{ range 9000000000000000000 }}{{ end }}true`, []clusterv1.JSONPatch{rendering("1")},
			where + "enabledIf: the template exceeds the limit"},
		{"YAML with many aliases", "true",
			[]clusterv1.JSONPatch{rendering("- &x " + strings.Repeat("x", 50_000) + "\n" + strings.Repeat("- *x\n", 30_000))},
			where + "definition 0, jsonPatch 0 (add /spec/template/spec/x): the template rendered YAML with aliases that expand to more than"},
		{"many copies of a large variable", "true",
			times(300, clusterv1.JSONPatch{Op: "add", Path: "/spec/template/spec/x", ValueFrom: &clusterv1.JSONPatchValue{Variable: big}}),
			"(add /spec/template/spec/x): the template exceeds the limit"},
		{"many templates within their own limits", "true", times(200, rendering(`{{ until 400000 | len }}`)),
			"(add /spec/template/spec/x): the template exceeds the limit"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			in := fixture(t, "[{name: big, required: false, schema: {openAPIV3Schema: {type: string}}}]",
				patch(onControlPlane, "    - {op: remove, path: /spec/template/spec/x}"),
				"variables: [{name: big, value: "+strings.Repeat("x", 1<<20)+"}]")
			in.Class.Spec.Patches[0].EnabledIf = tc.enabledIf
			in.Class.Spec.Patches[0].Definitions[0].JSONPatches = tc.changes
			engine, err := New(in.Class, nil)
			if err != nil {
				t.Fatal(err)
			}
			bounded(t, tc.want, func() error { return engine.Apply(t.Context(), in) })
		})
	}
}

// hostileAnswers returns patches of an extension that take minutes or gigabytes if nothing limits them.
func hostileAnswers() map[string][]Patch {
	operations := func(first string, n int, each string) []Patch {
		return []Patch{{Item: 1, Type: JSONPatch, Patch: []byte("[" + first + strings.Repeat(","+each, n) + "]")}}
	}
	add := func(value string) string { return `{"op":"add","path":"/spec/x","value":` + value + `}` }
	long := "[" + strings.Repeat("1,", 400_000) + "1]"
	alternating := []Patch{{Item: 1, Type: JSONMergePatch, Patch: []byte(`{"spec":{"x":` + long + `}}`)}}
	for range 10_000 {
		alternating = append(alternating, Patch{Item: 1, Type: JSONPatch, Patch: []byte(`[{"op":"copy","from":"/spec/x","path":"/spec/y"}]`)},
			Patch{Item: 1, Type: JSONMergePatch, Patch: []byte(`{"spec":{"y":null}}`)})
	}
	path := strings.Repeat("/a", 9_000)
	nested := strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_000)
	return map[string][]Patch{
		"copies that double":                   operations(add(`["`+strings.Repeat("x", 1000)+`"]`), 60, `{"op":"copy","from":"/spec/x","path":"/spec/x/-"}`),
		"many copies of a large value":         operations(add(`"`+strings.Repeat("x", 1<<20)+`"`), 60_000, `{"op":"copy","from":"/spec/x","path":"/spec/y"}`),
		"copies of each other, in turns":       alternating,
		"insertions at the start of a list":    operations(add(long), 60_000, `{"op":"add","path":"/spec/x/0","value":1}`),
		"removals from the start of a list":    operations(add(long), 60_000, `{"op":"remove","path":"/spec/x/0"}`),
		"moves within a long list":             operations(add(long), 60_000, `{"op":"move","from":"/spec/x/0","path":"/spec/x/-"}`),
		"comparisons of a large value":         operations(add(long), 60_000, `{"op":"test","path":"/spec/x","value":1}`)[:1],
		"a path that is deep":                  operations(add(nested), 400, `{"op":"add","path":"/spec/x`+path+`","value":`+nested+`}`),
		"a template that is nested too deeply": operations(add(nested), 1, `{"op":"add","path":"/spec/y","value":1}`),
	}
}

func TestPatchesOfExtensionsAreBounded(t *testing.T) {
	for reason, answer := range hostileAnswers() {
		t.Run(reason, func(t *testing.T) {
			in := externalFixture(t)
			engine, err := New(in.Class, &extension{patches: answer})
			if err != nil {
				t.Fatal(err)
			}
			bounded(t, `of "generate.x"`, func() error { return engine.Apply(t.Context(), in) })
		})
	}
}

// TestManyPatchesOfATemplate applies as many patches as fit into an answer to a large template. It is decoded once, not for each.
func TestManyPatchesOfATemplate(t *testing.T) {
	answer := []Patch{{Item: 1, Type: JSONMergePatch, Patch: []byte(`{"spec":{"template":{"spec":{"kubeadmConfigSpec":{"external":1,"commands":[` +
		strings.Repeat(`"aaaaaaaaaa",`, 70_000) + `"a"]}}}}}`)}}
	for range 60_000 {
		answer = append(answer, Patch{Item: 1, Type: JSONMergePatch, Patch: []byte(`{"a":1}`)})
	}
	in := externalFixture(t)
	engine, err := New(in.Class, &extension{patches: answer})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Apply(t.Context(), in); err != nil {
		t.Errorf("tiny patches are applied: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := engine.Apply(ended, externalFixture(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("the process is ending: %v", err)
	}
}

func TestTemplatesThatAreTooLongAreRejectedAtAdmission(t *testing.T) {
	in := fixture(t, "[]", patch(onControlPlane, "    - {op: remove, path: /spec/template/spec/x}"), "{}")
	long := strings.Repeat("x", 300<<10)
	in.Class.Spec.Patches[0].EnabledIf = long
	errs := Validate(in.Class, false)
	if len(errs) == 0 || errs[0].Error() != "spec.patches[0].enabledIf: Invalid value: the template has 307200 bytes: at most 262144 are allowed" {
		t.Errorf("errors = %.500v", errs)
	}
}
