package patches

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const validated = `
metadata: {name: class, namespace: default}
spec:
  infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerClusterTemplate, name: a}}
  controlPlane:
    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, name: a}
    machineInfrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: a}}
  workers:
    machineDeployments:
    - class: default-worker
      bootstrap: {templateRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: a}}
      infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: a}}
    machinePools:
    - class: default-pool
      bootstrap: {templateRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: a}}
      infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachinePoolTemplate, name: a}}
  variables:
  - {name: imageRepository, required: true, schema: {openAPIV3Schema: {type: string}}}
  - {name: list, required: true, schema: {openAPIV3Schema: {type: array, items: {type: string}}}}
`

// nothing is a JSON patch whose content does not matter.
const nothing = "    - {op: remove, path: /spec/a}"

func selector(kind, match string) string {
	return `selector: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: ` + kind + `, matchResources: ` + match + `}`
}

func onePatch(jsonPatch string) string { return patch(onControlPlane, "    - "+jsonPatch) }

// validation is a test case: the patches of a class and the expected errors.
type validation struct {
	reason, patches string
	runtimeSDK      bool
	want            []string
}

const (
	atDefinition = "spec.patches[0].definitions[0]"
	atChange     = atDefinition + ".jsonPatches[0]"
	atMatch      = atDefinition + ".selector.matchResources"
)

func TestValidate(t *testing.T) {
	validateAll(t, []validation{
		{reason: "a patch from the documentation", patches: onePatch(`{op: add, path: /spec/template/spec/x, valueFrom: {variable: imageRepository}}`)},
		{reason: "names are required", patches: `[{name: "", definitions: []}]`, want: []string{`spec.patches[0].name: Required value: the name of the patch is required`}},
		{reason: "inline is reserved", patches: `[{name: inline, definitions: []}]`,
			want: []string{`spec.patches[0].name: Invalid value: "inline": the name is reserved for the variables of the class itself: choose another name`}},
		{reason: "names are unique", patches: `[{name: a, definitions: []}, {name: a, definitions: []}]`, want: []string{`spec.patches[1].name: Duplicate value: "a"`}},
		{reason: "a patch requires definitions or external", patches: `[{name: a}]`, want: []string{`spec.patches[0]: Required value: set either definitions or external`}},
		{reason: "definitions and external are mutually exclusive", runtimeSDK: true, patches: `[{name: a, definitions: [], external: {generatePatchesExtension: x}}]`,
			want: []string{`spec.patches[0]: Invalid value: "a": definitions and external are mutually exclusive: split the patch in two`}},
		{reason: "an external patch", runtimeSDK: true, patches: `[{name: a, external: {generatePatchesExtension: x}}]`},
		{reason: "external patches require the feature gate", patches: `[{name: a, external: {validateTopologyExtension: x}}]`,
			want: []string{`spec.patches[0].external: Forbidden: external patches require the feature gate RuntimeSDK`}},
		{reason: "an extension for variables alone is not enough", runtimeSDK: true, patches: `[{name: a, external: {discoverVariablesExtension: x}}]`,
			want: []string{`spec.patches[0].external: Required value: set generatePatchesExtension, validateTopologyExtension or both`}},
		{reason: "enabledIf must be a valid template", patches: `[{name: a, enabledIf: "{{ if }}", definitions: []}]`,
			want: []string{`spec.patches[0].enabledIf: Invalid value: "{{ if }}": not a valid Go template: template: :1: missing value for if`}},
		{reason: "enabledIf cannot read the environment", patches: `[{name: a, enabledIf: "{{ env \"HOME\" }}", definitions: []}]`,
			want: []string{`spec.patches[0].enabledIf: Invalid value: "{{ env \"HOME\" }}": not a valid Go template: template: :1: function "env" not defined`}},

		{reason: "a selector must select something", patches: patch(selector("DockerClusterTemplate", "{}"), nothing),
			want: []string{atMatch + `: Required value: select at least one of infrastructureCluster, controlPlane, machineDeploymentClass and machinePoolClass`}},
		{reason: "the infrastructure cluster", patches: patch(selector("DockerClusterTemplate", "{infrastructureCluster: true}"), nothing)},
		{reason: "another infrastructure", patches: patch(selector("AWSClusterTemplate", "{infrastructureCluster: true}"), nothing),
			want: []string{atMatch + `.infrastructureCluster: Invalid value: "infrastructure.cluster.x-k8s.io/v1beta1 AWSClusterTemplate": the selector's apiVersion and kind match none of spec.infrastructure.templateRef`}},
		{reason: "the machines of the control plane", patches: patch(selector("DockerMachineTemplate", "{controlPlane: true}"), nothing)},
		{reason: "not a control plane", patches: patch(selector("DockerClusterTemplate", "{controlPlane: true}"), nothing),
			want: []string{atMatch + `.controlPlane: Invalid value: "infrastructure.cluster.x-k8s.io/v1beta1 DockerClusterTemplate": the selector's apiVersion and kind match none of spec.controlPlane.templateRef or spec.controlPlane.machineInfrastructure.templateRef`}},
		{reason: "classes by name and wildcard", patches: patch(selector("DockerMachineTemplate", `{machineDeploymentClass: {names: [default-worker, "*", "default-*", "*worker"]}}`), nothing)},
		{reason: "every name must select something", patches: patch(selector("DockerMachineTemplate", `{machineDeploymentClass: {names: [default-worker, other]}}`), nothing),
			want: []string{atMatch + `.machineDeploymentClass.names[1]: Invalid value: "infrastructure.cluster.x-k8s.io/v1beta1 DockerMachineTemplate": the selector's apiVersion and kind match none of the bootstrap and infrastructure templates of classes named "other"`}},
		{reason: "wildcards must be at one end", patches: patch(selector("DockerMachineTemplate", `{machineDeploymentClass: {names: ["a*b", "*a*", ""]}}`), nothing),
			want: []string{
				atMatch + `.machineDeploymentClass.names[0]: Invalid value: "a*b": must be the name of a class, "*", or a name that starts or ends with one "*"`,
				atMatch + `.machineDeploymentClass.names[1]: Invalid value: "*a*": must be the name of a class, "*", or a name that starts or ends with one "*"`,
				atMatch + `.machineDeploymentClass.names[2]: Invalid value: "": must be the name of a class, "*", or a name that starts or ends with one "*"`,
			}},
		{reason: "MachinePools", patches: patch(selector("DockerMachinePoolTemplate", `{machinePoolClass: {names: [default-pool]}}`), nothing)},
		{reason: "a MachinePool's kind is not that of a MachineDeployment", patches: patch(selector("DockerMachineTemplate", `{machinePoolClass: {names: [default-pool]}}`), nothing),
			want: []string{atMatch + `.machinePoolClass.names[0]: Invalid value: "infrastructure.cluster.x-k8s.io/v1beta1 DockerMachineTemplate": the selector's apiVersion and kind match none of the bootstrap and infrastructure templates of classes named "default-pool"`}},
	})
}

func TestValidateJSONPatches(t *testing.T) {
	validateAll(t, []validation{
		{reason: "other operations are not supported", patches: onePatch(`{op: move, path: /spec/a, value: 1}`),
			want: []string{atChange + `.op: Unsupported value: "move": supported values: "add", "replace", "remove"`}},
		{reason: "paths must be in spec", patches: onePatch(`{op: add, path: /metadata/name, value: x}`),
			want: []string{atChange + `.path: Invalid value: "/metadata/name": must be or start with /spec, /metadata/labels or /metadata/annotations: patches can change nothing else of templates`}},
		{reason: "or in labels", patches: onePatch(`{op: add, path: /metadata/labels, value: {a: b}}`)},
		{reason: "or in annotations", patches: onePatch(`{op: add, path: /metadata/annotations/example.com~1a, value: b}`)},
		{reason: "names that start with spec are others", patches: onePatch(`{op: add, path: /specs, value: 1}`),
			want: []string{atChange + `.path: Invalid value: "/specs": must be or start with /spec, /metadata/labels or /metadata/annotations: patches can change nothing else of templates`}},
		{reason: "the whole spec", patches: onePatch(`{op: add, path: /spec, value: {template: {spec: {}}}}`)},
		{reason: "adding to an array", patches: onePatch(`{op: add, path: /spec/a/0, value: 1}`)},
		{reason: "appending to an array", patches: onePatch(`{op: add, path: /spec/a/-, value: 1}`)},
		{reason: "other indexes are not supported", patches: onePatch(`{op: add, path: /spec/a/1, value: 1}`),
			want: []string{atChange + `.path: Invalid value: "/spec/a/1": array index "1" is not supported: use 0 (insert at the start) or - (append)`}},
		{reason: "elements cannot be replaced", patches: onePatch(`{op: replace, path: /spec/a/0, value: 1}`),
			want: []string{atChange + `.path: Invalid value: "/spec/a/0": array indexes are not supported with "replace", only with add: 0 or -`}},
		{reason: "elements cannot be removed", patches: onePatch(`{op: remove, path: /spec/a/-}`),
			want: []string{atChange + `.path: Invalid value: "/spec/a/-": array indexes are not supported with "remove", only with add: 0 or -`}},
		{reason: "add requires a value", patches: onePatch(`{op: add, path: /spec/a}`), want: []string{atChange + `: Required value: set either value or valueFrom`}},
		{reason: "null is a value", patches: onePatch(`{op: add, path: /spec/a, value: {a: null}}`)},
		{reason: "value and valueFrom are mutually exclusive", patches: onePatch(`{op: add, path: /spec/a, value: 1, valueFrom: {variable: imageRepository}}`),
			want: []string{atChange + `.valueFrom: Invalid value: "": value and valueFrom are mutually exclusive: remove one of them`}},
		{reason: "remove must not have a value", patches: onePatch(`{op: remove, path: /spec/a, value: 1, valueFrom: {variable: imageRepository}}`),
			want: []string{atChange + `.value: Forbidden: must not be set with op remove`, atChange + `.valueFrom: Forbidden: must not be set with op remove`}},
		{reason: "valueFrom requires a source", patches: onePatch(`{op: add, path: /spec/a, valueFrom: {}}`), want: []string{atChange + `.valueFrom: Required value: set either variable or template`}},
		{reason: "sources of valueFrom are mutually exclusive", patches: onePatch(`{op: add, path: /spec/a, valueFrom: {variable: imageRepository, template: a}}`),
			want: []string{atChange + `.valueFrom: Invalid value: "": variable and template are mutually exclusive: remove one of them`}},
		{reason: "templates must be valid", patches: onePatch(`{op: add, path: /spec/a, valueFrom: {template: "{{"}}`),
			want: []string{atChange + `.valueFrom.template: Invalid value: "{{": not a valid Go template: template: :1: unclosed action`}},
		{reason: "a part of a variable", patches: onePatch(`{op: add, path: /spec/a, valueFrom: {variable: "list[0]"}}`)},
		{reason: "variables must be defined", patches: onePatch(`{op: add, path: /spec/a, valueFrom: {variable: other.x}}`),
			want: []string{atChange + `.valueFrom.variable: Invalid value: "other.x": variable "other" is not defined in spec.variables`}},
		{reason: "references must be valid", patches: onePatch(`{op: add, path: /spec/a, valueFrom: {variable: "list[x]"}}`),
			want: []string{atChange + `.valueFrom.variable: Invalid value: "list[x]": "list[x]": "x" is not an index`}},
		{reason: "builtin variables", patches: patch(onControlPlane, `
    - {op: add, path: /spec/a, valueFrom: {variable: builtin}}
    - {op: add, path: /spec/a, valueFrom: {variable: builtin.cluster.network.ipFamily}}
    - {op: add, path: /spec/a, valueFrom: {variable: "builtin.cluster.network.pods[0]"}}
    - {op: add, path: /spec/a, valueFrom: {variable: builtin.controlPlane.machineTemplate.infrastructureRef.name}}
    - {op: add, path: /spec/a, valueFrom: {variable: builtin.machinePool.bootstrap.configRef.name}}`)},
		{reason: "unknown builtin variables", patches: onePatch(`{op: add, path: /spec/a, valueFrom: {variable: builtin.cluster.nam}}`),
			want: []string{atChange + `.valueFrom.variable: Invalid value: "builtin.cluster.nam": unknown builtin variable`}},
	})
}

func validateAll(t *testing.T, tests []validation) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			class := parse[clusterv1.ClusterClass](t, validated)
			class.Spec.Patches = parse[[]clusterv1.ClusterClassPatch](t, tt.patches)
			var got []string
			for _, err := range Validate(&class, tt.runtimeSDK) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: errors (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestValidateInvalidJSON(t *testing.T) {
	class := parse[clusterv1.ClusterClass](t, validated)
	class.Spec.Patches = parse[[]clusterv1.ClusterClassPatch](t, onePatch(`{op: add, path: /spec/a, value: x}`))
	class.Spec.Patches[0].Definitions[0].JSONPatches[0].Value.Raw = []byte(`"x`)
	errs := Validate(&class, false)
	if len(errs) != 1 || errs[0].Field != "spec.patches[0].definitions[0].jsonPatches[0].value" {
		t.Errorf("a value with invalid JSON: got %v", errs)
	}
}
