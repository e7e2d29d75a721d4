package patches

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/exp/runtime/topologymutation/variable"
)

// onEverything selects the templates of the fixture's control plane and of its workers' machines.
func onEverything(changes []clusterv1.JSONPatch) []clusterv1.PatchDefinition {
	all := clusterv1.PatchSelectorMatch{
		InfrastructureCluster: ptr.To(true), ControlPlane: ptr.To(true),
		MachineDeploymentClass: &clusterv1.PatchSelectorMatchMachineDeploymentClass{Names: []string{"*"}},
		MachinePoolClass:       &clusterv1.PatchSelectorMatchMachinePoolClass{Names: []string{"*"}},
	}
	return []clusterv1.PatchDefinition{
		{Selector: clusterv1.PatchSelector{APIVersion: controlPlaneGroup, Kind: "KubeadmControlPlaneTemplate", MatchResources: all}, JSONPatches: changes},
		{Selector: clusterv1.PatchSelector{APIVersion: infrastructureGroup, Kind: "DockerMachineTemplate", MatchResources: all}, JSONPatches: changes},
	}
}

// Fuzzes inline patches: those that admission accepts must compile; an error must not change anything; otherwise only specs of
// targets change, except for fields that the topology owns, and the result is deterministic.
func FuzzInline(f *testing.F) {
	for _, seed := range []struct{ op, path, value, variable, template string }{
		{"add", "/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/imageRepository", `"r"`, "", ""},
		{"replace", "/spec/template/spec/kubeadmConfigSpec", `{}`, "", ""}, {"remove", "/spec/template/spec/kubeadmConfigSpec", "", "", ""}, {"remove", "/spec/template", "", "", ""},
		{"add", "/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs/-", `"é日本"`, "", ""}, {"add", "/spec/template/spec/extraMounts/0", `null`, "", ""},
		{"replace", "/spec/template/spec/extraMounts/0", `1`, "", ""}, {"remove", "/spec/template/spec/extraMounts/-0", ``, "", ""}, {"add", "/spec/template", `1`, "", ""},
		{"add", "/spec/template/spec/version", `"v9"`, "", ""}, {"add", "/spec/template/spec/machineTemplate", `[]`, "", ""}, {"add", "/spec/template/spec/replicas", `7`, "", ""},
		{"add", "/spec/template/spec/x", "", "v", ""}, {"add", "/spec/template/spec/x", "", "v[0].a", ""}, {"add", "/spec/template/spec/x", "", "builtin.cluster.name", ""}, {"add", "/spec/template/spec/x", "", "builtin", ""},
		{"add", "/spec/template/spec/x", "", "", "{{ .v }}"}, {"add", "/spec/template/spec/x", "", "", "a: {{ .builtin.cluster.name }}\nb: [1, 2.5, 1e3]"}, {"add", "/spec/template/spec/x", "", "", "a: &a [*a]"},
		{"add", "/spec/template/spec/x", "", "", "{{ range 10000 }}- {{ . }}\n{{ end }}"}, {"add", "/spec/template/spec/x", "", "", "!!binary eA=="}, {"add", "/spec/template/spec/x", "", "", "? {a: b}\n: c"}, {"add", "/spec/template/spec/x", "", "", ".nan"},
		{"add", "/spec//", `1`, "", ""}, {"add", "/spec/~0~1~2~", `1`, "", ""}, {"add", "/metadata/name", `"x"`, "", ""}, {"copy", "/spec/template", ``, "", ""}, {"add", "/spec/template/spec/x", `1e400`, "", ""}, {"add", "/spec/template/spec/x", `{"a":`, "", ""},
		{"add", "/spec/template/spec/x", `123456789012345678901234567890`, "", ""}, {"add", "/spec/template/spec/\xff", `"\ud800"`, "", ""}, {"add", "/spec/template/spec/x", "", "v]", ""}, {"add", "/spec/template/spec/x", "", "v[0][1", ""},
	} {
		f.Add(seed.op, seed.path, seed.value, seed.variable, seed.template, `{{ if eq .builtin.cluster.name "c" }}true{{ end }}`, `["a", {"a": 1.5}, null]`)
		f.Add(seed.op, seed.path, seed.value, seed.variable, seed.template, "true", `"é"`)
	}
	f.Fuzz(func(t *testing.T, op, path, value, variable, template, enabledIf, set string) {
		if !json.Valid([]byte(set)) || len(path)+len(value)+len(set) > 8<<10 {
			t.Skip("not a request that an API server accepts")
		}
		change := clusterv1.JSONPatch{Op: op, Path: path}
		switch {
		case value != "":
			change.Value = &apiextensionsv1.JSON{Raw: []byte(value)}
		case variable != "":
			change.ValueFrom = &clusterv1.JSONPatchValue{Variable: variable}
		case template != "":
			change.ValueFrom = &clusterv1.JSONPatchValue{Template: template}
		}
		input := func() *Input {
			in := fixture(t, "[{name: v, required: false, schema: {openAPIV3Schema: {type: object}}}]", "[]", "{}")
			in.Class.Spec.Patches = []clusterv1.ClusterClassPatch{{Name: "p", EnabledIf: enabledIf, Definitions: onEverything([]clusterv1.JSONPatch{change})}}
			in.Cluster.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "v", Value: apiextensionsv1.JSON{Raw: []byte(set)}}}
			return in
		}
		in := input()
		v := &validator{parser: newParser(), class: in.Class, variables: map[string]bool{"v": true}}
		admitted := len(v.jsonPatch(&change, nil))+len(v.template(enabledIf, nil)) == 0
		engine, err := New(in.Class, nil)
		if err != nil {
			if admitted {
				t.Fatalf("admission accepts it, but it does not compile: %v", err)
			}
			return
		}
		sources, targets := in.sources(), runtime.DeepCopyJSON(in.targets())
		err = engine.Apply(t.Context(), in)
		if diff := cmp.Diff(sources, in.sources()); diff != "" {
			t.Fatalf("sources are changed (-before +after):\n%s", diff)
		}
		if err != nil {
			if diff := cmp.Diff(targets, in.targets()); diff != "" {
				t.Errorf("despite error %v targets are changed (-before +after):\n%s", err, diff)
			}
			return
		}
		checkTargets(t, in, targets)
		again := input()
		if err := engine.Apply(t.Context(), again); err != nil {
			t.Fatalf("second run: %v", err)
		}
		if diff := cmp.Diff(in.targets(), again.targets()); diff != "" {
			t.Errorf("the second run differs (-first +second):\n%s", diff)
		}
	})
}

// checkTargets checks that targets can be sent, and that fields that the topology owns have not changed.
func checkTargets(t *testing.T, in *Input, before map[string]any) {
	t.Helper()
	for name, spec := range in.targets() {
		object, ok := spec.(map[string]any)
		if !ok {
			t.Fatalf("%s has spec %v", name, spec)
		}
		if _, err := json.Marshal(object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	cp := in.ControlPlane.Target
	old, _ := before[cp.GetKind()+" "+cp.GetName()].(map[string]any)
	for _, fields := range topologyOwned {
		want, found, _ := unstructured.NestedFieldNoCopy(old, fields...)
		got, _, _ := unstructured.NestedFieldNoCopy(cp.Object, append([]string{"spec"}, fields...)...)
		if diff := cmp.Diff(want, got); found && diff != "" {
			t.Errorf("%v is owned by the topology (-want +got):\n%s", fields, diff)
		}
	}
}

// Fuzzes patches of extensions: an error must not change anything; otherwise only specs change.
func FuzzExternal(f *testing.F) {
	for _, patch := range []string{
		`[{"op":"add","path":"/spec/template/spec/x","value":1}]`, `[{"op":"remove","path":"/spec"}]`, `[{"op":"copy","from":"/spec","path":"/spec/template/spec/y"}]`, `[{"op":"move","from":"/spec/template","path":"/spec/x"}]`,
		`[{"op":"test","path":"/kind","value":"x"}]`, `[{"op":"add","path":"/metadata/name","value":"x"}]`, `[{"op":"replace","path":"","value":{}}]`, `[{"op":"add","path":"","value":null}]`, `[{"op":"add","path":"/spec/template/spec/extraMounts/-1","value":null}]`,
		`[{"op":"add","path":"/spec/template/spec/version","value":"v9"}]`, `{"spec":{"template":{"spec":{"x":null}}}}`, `{"spec":null}`, `null`, `[]`, `1`, `"x"`, ``, `{"spec":{"template":[1]}}`, `[{"op":"add"}]`, `[null]`, `[{"op":"remove","path":"/x/-"}]`, `{"a":{"b":{"c":"é"}}}`,
		`[{"op":"add","path":"/spec/template/spec/extraMounts/1","value":{}},{"op":"copy","from":"/spec/template/spec/extraMounts/0","path":"/spec/template/spec/extraMounts/-"}]`,
	} {
		f.Add([]byte(patch), true, 1)
		f.Add([]byte(patch), false, 2)
	}
	f.Fuzz(func(t *testing.T, patch []byte, merge bool, item int) {
		if len(patch) > 16<<10 {
			t.Skip("long")
		}
		x := &extension{patches: []Patch{{Item: item, Type: JSONPatch, Patch: patch}}}
		if merge {
			x.patches[0].Type = JSONMergePatch
		}
		in := fixture(t, "[]", "[{name: p, external: {generatePatchesExtension: g}}]", "{}")
		engine, err := New(in.Class, x)
		if err != nil {
			t.Fatal(err)
		}
		sources, targets := in.sources(), runtime.DeepCopyJSON(in.targets())
		err = engine.Apply(t.Context(), in)
		if diff := cmp.Diff(sources, in.sources()); diff != "" {
			t.Fatalf("sources are changed (-before +after):\n%s", diff)
		}
		if err != nil {
			if diff := cmp.Diff(targets, in.targets()); diff != "" {
				t.Errorf("despite error %v targets are changed (-before +after):\n%s", err, diff)
			}
			return
		}
		checkTargets(t, in, targets)
	})
}

// Compares patches of extensions with another implementation: what it accepts is accepted here, with the same result.
func FuzzDocument(f *testing.F) {
	const template = `{"spec":{"a":{"b":[1,{"c":"x"},null],"~/":true},"n":12345678901,"f":1.5,"s":"é"}}`
	for _, patch := range []string{
		`[{"op":"add","path":"/spec/a/b/1","value":[{}]}]`, `[{"op":"remove","path":"/spec/a/b/-1"}]`, `[{"op":"copy","from":"/spec","path":"/spec/a/y"}]`, `[{"op":"move","from":"/spec/a","path":"/spec/x"},{"op":"move","from":"/spec/x","path":"/spec/x/y"}]`,
		`[{"op":"test","path":"/spec/n","value":12345678901},{"op":"test","path":"/spec/a/b/1","value":{"c":"x"}},{"op":"test","path":"/none","value":null},{"op":"test","path":"/spec/a/b/2"}]`,
		`[{"op":"replace","path":"/spec/a/b/02","value":null},{"op":"add","path":"/spec/a/b/-","value":1},{"op":"add","path":"/spec/a/b/-1","value":1},{"op":"add","path":"/spec/a/b/+0","value":1}]`,
		`[{"op":"replace","path":"","value":{"spec":1}}]`, `[{"op":"add","path":"spec","value":{}}]`, `[{"op":"add","path":"/spec/a/~0~1","value":{}}]`, `[{"op":"test","path":"","value":1}]`, `[{"op":"remove","path":""}]`, `[{"op":"x"}]`, `[null]`, `{}`, `null`, `[]`, ``,
		`{"spec":{"a":{"b":null,"new":{"x":null,"y":[null,{"z":null}]}},"n":{"q":1}}}`, `{"spec":[1]}`, `1`, `{"a":{}}`, `[{"op":"copy","from":"/spec/a/b","path":"/spec/a/b/-"},{"op":"copy","from":"","path":"/x"},{"op":"add","path":"/","value":1}]`,
		`[{"op":"copy","from":"/","path":""}]`, `[{"op":"test","path":""}]`, `[{"op":"add","path":"//0","value":[]}]`,
	} {
		f.Add([]byte(patch), false)
		f.Add([]byte(patch), true)
	}
	f.Fuzz(func(t *testing.T, patch []byte, asMerge bool) {
		if len(patch) > 4<<10 {
			t.Skip("long")
		}
		items := []Item{{Object: []byte(template)}}
		one := Patch{Type: JSONPatch, Patch: patch}
		var want []byte
		var wantErr error
		if asMerge {
			one.Type = JSONMergePatch
			want, wantErr = jsonpatch.MergePatch([]byte(template), patch)
		} else {
			want, wantErr = applyElsewhere([]byte(template), patch)
		}
		got, err := ApplyAll(t.Context(), items, []Patch{one}, AnswerBudget(items))
		if err != nil && utf8.Valid(patch) && !utf8.ValidString(err.Error()) {
			t.Errorf("the error is not valid UTF-8: %q", err)
		}
		if wantErr != nil {
			return
		}
		if err != nil && !strings.Contains(err.Error(), "the path must begin with") && !isAmbiguous(patch) {
			t.Fatalf("%s is refused: %v; the other implementation results in %s", patch, err, want)
		}
		if err != nil {
			return // The other implementation ignores what is before the first slash.
		}
		parsed, parseErr := parseJSON(want)
		_, isObject := parsed.(map[string]any)
		if diff := cmp.Diff(parsed, got[0]); diff != "" && parseErr == nil && isObject && !isAmbiguous(patch) {
			t.Errorf("%s (-other implementation +here):\n%s", patch, diff)
		}
	})
}

// applyElsewhere applies a JSON patch with another implementation. It panics for some patches, such as a test of the whole document without
// a value: that is an error here.
func applyElsewhere(document, patch []byte) (result []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return operations.Apply(document)
}

// isAmbiguous reports whether the other implementation takes a patch otherwise: it copies the whole document as it was at first, and a field
// with an empty name, as in "/" and "/a//b", is the object itself, and not the field of RFC 6901.
func isAmbiguous(patch []byte) bool {
	var all []jsonOperation
	_ = json.Unmarshal(patch, &all)
	hasEmptyName := func(pointer string) bool {
		return strings.Contains(pointer, "//") || strings.HasSuffix(pointer, "/")
	}
	return slices.ContainsFunc(all, func(o jsonOperation) bool {
		return (o.Op == "copy" || o.Op == "move") && (o.Path == "" || o.From == "") || hasEmptyName(o.Path) || hasEmptyName(o.From)
	})
}

// Fuzzes pointers and references: formatting and parsing a pointer again yields the same parts; a reference starts with the name
// of its variable and returns the value at its steps.
func FuzzPointersAndLookups(f *testing.F) {
	for _, text := range []string{"/spec/a~1b/~0", "/", "", "//", "a", "/~01", "/~2", "/-0", "/é/日本", "/\xff", "a.b[0][1].c", "a[0", "a[]", "[0]", "a[0]b", "a..b", ".", "a.b]", "a[18446744073709551616]", "a[0].[1]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.HasPrefix(text, "/") {
			parts := parsePointer(text)
			if diff := cmp.Diff(parts, parsePointer(parts.String())); diff != "" {
				t.Errorf("%q is formatted as %q (-first +second):\n%s", text, parts, diff)
			}
		}
		l, err := variable.Parse(text)
		if err != nil {
			if utf8.ValidString(text) && !utf8.ValidString(err.Error()) {
				t.Errorf("%q: the error is not valid UTF-8", text)
			}
			return
		}
		value := any("found")
		for _, step := range slices.Backward(l.Steps()) {
			switch step := step.(type) {
			case string:
				value = map[string]any{step: value}
			case int:
				if step > 1000 {
					t.Skip("a long list")
				}
				list := make([]any, step+1)
				list[step] = value
				value = list
			}
		}
		values, _ := value.(map[string]any)
		if got, err := l.Get(values); err != nil || got != "found" {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if _, found := values[l.Name()]; !found {
			t.Errorf("%q does not start with %q", text, l.Name())
		}
		if got, err := l.Get(map[string]any{l.Name(): nil}); len(l.Steps()) > 1 && err == nil {
			t.Errorf("%q returns %v for empty values", text, got)
		}
	})
}
