package patches

import (
	"runtime"
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

func rendering(template string) clusterv1.JSONPatch {
	return clusterv1.JSONPatch{Op: "add", Path: "/spec/template/spec/x", ValueFrom: &clusterv1.JSONPatchValue{Template: &template}}
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
			times(300, clusterv1.JSONPatch{Op: "add", Path: "/spec/template/spec/x", ValueFrom: &clusterv1.JSONPatchValue{Variable: &big}}),
			"(add /spec/template/spec/x): the template exceeds the limit"},
		{"many templates within their own limits", "true", times(200, rendering(`{{ until 400000 | len }}`)),
			"(add /spec/template/spec/x): the template exceeds the limit"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			in := fixture(t, "[{name: big, required: false, schema: {openAPIV3Schema: {type: string}}}]",
				patch(onControlPlane, "    - {op: remove, path: /spec/template/spec/x}"),
				"variables: [{name: big, value: "+strings.Repeat("x", 1<<20)+"}]")
			in.Class.Spec.Patches[0].EnabledIf = &tc.enabledIf
			in.Class.Spec.Patches[0].Definitions[0].JSONPatches = tc.changes
			engine, err := New(in.Class, nil)
			if err != nil {
				t.Fatal(err)
			}
			bounded(t, tc.want, func() error { return engine.Apply(t.Context(), in) })
		})
	}
}

func TestPatchesOfExtensionsAreBounded(t *testing.T) {
	doubling := []string{`{"op":"add","path":"/spec/x","value":["` + strings.Repeat("x", 1000) + `"]}`}
	for range 40 {
		doubling = append(doubling, `{"op":"copy","from":"/spec/x","path":"/spec/x/-"}`)
	}
	in := externalFixture(t)
	engine, err := New(in.Class, &extension{patches: []Patch{{Item: 1, Type: JSONPatch, Patch: []byte("[" + strings.Join(doubling, ",") + "]")}}})
	if err != nil {
		t.Fatal(err)
	}
	bounded(t, `patch 0 of "generate.x"`, func() error { return engine.Apply(t.Context(), in) })
}

func TestTemplatesThatAreTooLongAreRejectedAtAdmission(t *testing.T) {
	in := fixture(t, "[]", patch(onControlPlane, "    - {op: remove, path: /spec/template/spec/x}"), "{}")
	long := strings.Repeat("x", 300<<10)
	in.Class.Spec.Patches[0].EnabledIf = &long
	errs := Validate(in.Class, false)
	if len(errs) == 0 || errs[0].Error() != "spec.patches[0].enabledIf: Invalid value: the template has 307200 bytes: at most 262144 are allowed" {
		t.Errorf("errors = %.500v", errs)
	}
}
