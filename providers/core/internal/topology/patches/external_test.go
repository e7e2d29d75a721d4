package patches

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
)

// extension is an Extension that returns fixed results and records calls.
type extension struct {
	patches     []Patch
	generateErr error
	validateErr error
	generated   []Call
	validated   []Call
}

func (e *extension) GeneratePatches(_ context.Context, call Call) ([]Patch, error) {
	e.generated = append(e.generated, call)
	return e.patches, e.generateErr
}

func (e *extension) ValidateTopology(_ context.Context, call Call) error {
	e.validated = append(e.validated, call)
	return e.validateErr
}

const externalPatches = `
- name: before
  definitions:
  - ` + onControlPlane + `
    jsonPatches: [{op: add, path: /spec/template/spec/kubeadmConfigSpec, value: {inline: true}}]
- name: ext
  enabledIf: "false"
  external: {generatePatchesExtension: generate.x, validateTopologyExtension: validate.x, settings: {a: b}}
- name: after
  definitions:
  - ` + onControlPlane + `
    jsonPatches: [{op: replace, path: /spec/template/spec/kubeadmConfigSpec/external, value: 2}]
`

// externalFixture has variable "seen" defined by the extension, "inlineOnly" by the class, and "split" by both, with
// different schemas.
func externalFixture(t *testing.T) *Input {
	t.Helper()
	in := fixture(t, "[]", externalPatches, `
variables:
- {name: seen, value: 1}
- {name: inlineOnly, value: 2}
- {name: split, value: 3}
- {name: split, value: 4}
workers: {machineDeployments: [{class: default-worker, name: small, variables: {overrides: [{name: seen, value: 5}]}}]}`)
	in.Sources = variables.Sources{variables.List{}: {"", "", "inline", "ext"}}
	in.Class.Status.Variables = parse[[]clusterv1.ClusterClassStatusVariable](t, `
- {name: seen, definitionsConflict: false, definitions: [{from: ext, required: false, schema: {openAPIV3Schema: {type: integer}}}]}
- {name: inlineOnly, definitionsConflict: false, definitions: [{from: inline, required: false, schema: {openAPIV3Schema: {type: integer}}}]}
- {name: split, definitionsConflict: true, definitions: [{from: inline, required: false, schema: {openAPIV3Schema: {type: integer}}}, {from: ext, required: true, schema: {openAPIV3Schema: {type: integer}}}]}`)
	return in
}

func TestExternal(t *testing.T) {
	in := externalFixture(t)
	x := &extension{patches: []Patch{
		{Item: 1, Type: JSONPatch, Patch: []byte(`[{"op":"add","path":"/spec/template/spec/kubeadmConfigSpec/external","value":1},{"op":"test","path":"/kind","value":"KubeadmControlPlaneTemplate"},{"op":"replace","path":"/kind","value":"Other"}]`)},
		{Item: 3, Type: JSONMergePatch, Patch: []byte(`{"spec":{"template":{"spec":{"files":null}}}}`)},
		{Item: 3, Type: JSONMergePatch, Patch: []byte(`{"spec":{"template":{"spec":{"n":12345678901}}}}`)},
	}}
	engine, err := New(in.Class, x)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Apply(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{
		"control plane": in.ControlPlane.Target.Object["spec"].(map[string]any)["kubeadmConfigSpec"],
		"kind":          in.ControlPlane.Target.GetKind(),
		"bootstrap":     in.MachineDeployments[0].Bootstrap.Target.Object["spec"],
	}
	want := map[string]any{
		"control plane": tree(t, `{inline: true, external: 2}`),
		"kind":          "KubeadmControlPlane",
		"bootstrap":     tree(t, `{template: {spec: {"n": 12345678901}}}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("external patches apply in order with inline patches, to the spec only, regardless of enabledIf (-want +got):\n%s", diff)
	}
}

func TestExternalCalls(t *testing.T) {
	in := externalFixture(t)
	x := &extension{patches: []Patch{{Item: 1, Type: JSONMergePatch, Patch: []byte(`{"spec":{"template":{"spec":{"kubeadmConfigSpec":{"external":1}}}}}`)}}}
	engine, err := New(in.Class, x)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Apply(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if len(x.generated) != 1 || len(x.validated) != 1 {
		t.Fatalf("called %d and %d times, want once each", len(x.generated), len(x.validated))
	}
	call, validation := x.generated[0], x.validated[0]
	if call.Handler != "generate.x" || validation.Handler != "validate.x" || call.Settings["a"] != "b" || call.Cluster.Name != "c" {
		t.Errorf("handlers and settings: %+v, %+v", call, validation)
	}
	wantGlobal := map[string]string{
		"seen":    `1`,
		"split":   `4`,
		"builtin": `{"cluster":{"metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"c","topology.cluster.x-k8s.io/owned":""}},"name":"c","namespace":"default","topology":{"class":"class","classNamespace":"default","classRef":{"name":"class","namespace":"default"},"version":"v1.25.0"}}}`,
	}
	if diff := cmp.Diff(wantGlobal, byName(call.Variables)); diff != "" {
		t.Errorf("variables of the Cluster (-want +got):\n%s", diff)
	}
	if item := call.Items[0]; len(item.Variables) != 0 {
		t.Errorf("the infrastructure cluster must not have variables of its own: %v", byName(item.Variables))
	}
	small := call.Items[4]
	wantSmall := map[string]string{
		"seen":    `5`,
		"builtin": `{"machineDeployment":{"bootstrap":{"configRef":{"name":"c-small-b"}},"class":"default-worker","infrastructureRef":{"name":"c-small-i"},"name":"c-small-x","replicas":2,"topologyName":"small","version":"v1.24.0"}}`,
	}
	if diff := cmp.Diff(wantSmall, byName(small.Variables)); diff != "" {
		t.Errorf("variables of a MachineDeployment (-want +got):\n%s", diff)
	}
	wantHolders := []Holder{
		{"cluster.x-k8s.io/v1beta1", "Cluster", "default", "c", "spec.infrastructureRef"},
		{"cluster.x-k8s.io/v1beta1", "Cluster", "default", "c", "spec.controlPlaneRef"},
		{controlPlaneGroup, "KubeadmControlPlane", "default", "c-x", "spec.machineTemplate.infrastructureRef"},
		{"cluster.x-k8s.io/v1beta1", "MachineDeployment", "default", "c-small-x", "spec.template.spec.bootstrap.configRef"},
		{"cluster.x-k8s.io/v1beta1", "MachineDeployment", "default", "c-small-x", "spec.template.spec.infrastructureRef"},
	}
	var holders []Holder
	for _, item := range call.Items[:5] {
		holders = append(holders, item.Holder)
	}
	if diff := cmp.Diff(wantHolders, holders); diff != "" {
		t.Errorf("holders (-want +got):\n%s", diff)
	}
	if last := call.Items[len(call.Items)-1].Holder; last.Kind != "MachinePool" || last.Name != "c-pool-x" {
		t.Errorf("last holder: %+v", last)
	}
	if diff := cmp.Diff(map[string]any{"inline": true}, kubeadmConfigSpec(t, call)); diff != "" {
		t.Errorf("the extension sees the result of earlier patches (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"inline": true, "external": int64(2)}, kubeadmConfigSpec(t, validation)); diff != "" {
		t.Errorf("the validation sees the result of all patches (-want +got):\n%s", diff)
	}
}

func kubeadmConfigSpec(t *testing.T, call Call) any {
	t.Helper()
	template := mustParse(t, string(call.Items[1].Object)).(map[string]any)
	if template["kind"] != "KubeadmControlPlaneTemplate" {
		t.Errorf("the extension must get templates, got a %v", template["kind"])
	}
	return template["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["kubeadmConfigSpec"]
}

func byName(values []Variable) map[string]string {
	out := map[string]string{}
	for _, v := range values {
		out[v.Name] = string(json.RawMessage(v.Value.Raw))
	}
	return out
}

func TestExternalErrors(t *testing.T) {
	tests := []struct {
		reason    string
		extension Extension
		want      string
	}{
		{"the extension fails", &extension{generateErr: errors.New("boom")}, `patch "ext": generating patches with "generate.x": boom`},
		{"a template that was not in the request", &extension{patches: []Patch{{Item: 99}}}, `patch "ext": "generate.x" returned a patch for a template that was not in the request`},
		{"an unsupported patch type", &extension{patches: []Patch{{Item: 0, Type: "x"}}}, `patch "ext" for DockerClusterTemplate default/infra (infrastructure cluster): patch 0 of "generate.x": patch type "x" is not supported: it must be JSONPatch or JSONMergePatch`},
		{"a removed spec", &extension{patches: []Patch{{Item: 0, Type: JSONMergePatch, Patch: []byte(`{"spec":null}`)}}}, `patch "ext" for DockerClusterTemplate default/infra (infrastructure cluster): the patched template has no spec`},
		{"a replaced template", &extension{patches: []Patch{{Item: 0, Type: JSONPatch, Patch: []byte(`[{"op":"replace","path":"","value":[]}]`)}}}, `patch "ext" for DockerClusterTemplate default/infra (infrastructure cluster): the patched template has no spec`},
		{"validation fails", &extension{validateErr: errors.New("no"), patches: []Patch{{Item: 1, Type: JSONMergePatch, Patch: []byte(`{"spec":{"template":{"spec":{"kubeadmConfigSpec":{"external":1}}}}}`)}}},
			`patch "ext": validating the topology with "validate.x": no`},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			in := externalFixture(t)
			engine, err := New(in.Class, tt.extension)
			if err != nil {
				t.Fatal(err)
			}
			if err := engine.Apply(t.Context(), in); message(err) != tt.want {
				t.Errorf("%s: error\n%v\nwant\n%s", tt.reason, err, tt.want)
			}
		})
	}
	if _, err := New(externalFixture(t).Class, nil); message(err) != `ClusterClass default/class, patch "ext": external patches require the feature gate RuntimeSDK` {
		t.Errorf("external patches without an extension: %v", err)
	}
}
