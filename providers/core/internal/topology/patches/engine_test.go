package patches

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	onControlPlane = `selector: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, matchResources: {controlPlane: true}}`
	onWorkers      = `selector: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, matchResources: {machineDeploymentClass: {names: [default-worker]}}}`
)

// patch returns the patches of a class with one patch and one definition.
func patch(selector, jsonPatches string) string {
	return "- name: p\n  definitions:\n  - " + selector + "\n    jsonPatches:\n" + jsonPatches
}

func enabledIf(condition string) string {
	return "- name: p\n  enabledIf: '" + condition + "'\n  definitions:\n  - " + onControlPlane + `
    jsonPatches: [{op: add, path: /spec/template/spec/kubeadmConfigSpec/on, value: true}]`
}

const controlPlaneOn = `
version: v1.25.0
replicas: 3
machineTemplate: {metadata: {labels: {a: b}}, nodeDrainTimeout: 10s, infrastructureRef: {kind: DockerMachineTemplate, name: c-cp}}
kubeadmConfigSpec: {"on": true, clusterConfiguration: {apiServer: {certSANs: [localhost]}, controllerManager: {extraArgs: {}}}}`

const definitions = `
- {name: imageRepository, required: false, schema: {openAPIV3Schema: {type: string}}}
- {name: workerMachineType, required: false, schema: {openAPIV3Schema: {type: string}}}
- {name: etcdImageTag, required: false, schema: {openAPIV3Schema: {type: string}}}
- {name: vnetName, required: false, schema: {openAPIV3Schema: {type: string}}}
- {name: httpProxy, required: false, schema: {openAPIV3Schema: {type: object, properties: {url: {type: string}, enabled: {type: boolean}}}}}
- {name: mdConfig, required: false, schema: {openAPIV3Schema: {type: object, additionalProperties: {type: object, properties: {osImage: {type: string}}}}}}
- {name: dnsServers, required: false, schema: {openAPIV3Schema: {type: array, items: {type: string}}}}
- {name: size, required: false, schema: {openAPIV3Schema: {type: integer}}}
`

// applied is a test case: patches, a topology and the resulting targets.
type applied struct {
	reason, patches, topology string
	want                      map[string]string // specs of the targets that change
}

func TestApplyVariables(t *testing.T) {
	applyAll(t, []applied{
		{
			reason: "no patches, no changes",
		},
		{
			reason: "imageRepository: a variable becomes a field of the control plane",
			patches: patch(onControlPlane, `
    - {op: add, path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/imageRepository, valueFrom: {variable: imageRepository}}`),
			topology: `variables: [{name: imageRepository, value: my.custom.registry}]`,
			want: map[string]string{"KubeadmControlPlane c-x": `
version: v1.25.0
replicas: 3
machineTemplate: {metadata: {labels: {a: b}}, nodeDrainTimeout: 10s, infrastructureRef: {kind: DockerMachineTemplate, name: c-cp}}
kubeadmConfigSpec: {clusterConfiguration: {apiServer: {certSANs: [localhost]}, controllerManager: {extraArgs: {}}, imageRepository: my.custom.registry}}`},
		},
		{
			reason: "workerMachineType: an override for one MachineDeployment, the value of the Cluster for the other",
			patches: patch(onWorkers, `
    - {op: add, path: /spec/template/spec/instanceType, valueFrom: {variable: workerMachineType}}`),
			topology: `
variables: [{name: workerMachineType, value: t3.large}]
workers: {machineDeployments: [{class: default-worker, name: small, variables: {overrides: [{name: workerMachineType, value: t3.small}]}}]}`,
			want: map[string]string{
				"DockerMachineTemplate c-small-i": `{template: {spec: {extraMounts: [{hostPath: /a}], instanceType: t3.small}}}`,
				"DockerMachineTemplate c-large-i": `{template: {spec: {extraMounts: [{hostPath: /a}], instanceType: t3.large}}}`,
			},
		},
		{
			reason: "customImage: each template has the version of its object",
			patches: `
- name: customImage
  definitions:
  - ` + onWorkers + `
    jsonPatches:
    - op: add
      path: /spec/template/spec/customImage
      valueFrom:
        template: |
          kindest/node:{{ .builtin.machineDeployment.version | replace "+" "_" }}
  - selector: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachinePoolTemplate, matchResources: {machinePoolClass: {names: ["default-*"]}}}
    jsonPatches:
    - {op: add, path: /spec/template/spec/template/customImage, valueFrom: {template: "kindest/node:{{ .builtin.machinePool.version }}"}}
  - selector: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, matchResources: {controlPlane: true}}
    jsonPatches:
    - {op: add, path: /spec/template/spec/customImage, valueFrom: {template: "kindest/node:{{ .builtin.controlPlane.version }}"}}`,
			want: map[string]string{
				"DockerMachineTemplate c-small-i": `{template: {spec: {extraMounts: [{hostPath: /a}], customImage: "kindest/node:v1.24.0"}}}`,
				"DockerMachineTemplate c-large-i": `{template: {spec: {extraMounts: [{hostPath: /a}], customImage: "kindest/node:v1.24.0"}}}`,
				"DockerMachineTemplate c-cp":      `{template: {spec: {extraMounts: [{hostPath: /a}], customImage: "kindest/node:v1.25.0"}}}`,
				"DockerMachinePool c-pool-i":      `{template: {customImage: "kindest/node:v1.24.0"}}`,
			},
		},
		{
			reason: "complex variables: whole, a field, an element, and by class in a template",
			patches: patch(onWorkers, `
    - {op: add, path: /spec/template/spec/url, valueFrom: {variable: httpProxy.url}}
    - {op: add, path: /spec/template/spec/image, valueFrom: {template: "{{ (index .mdConfig .builtin.machineDeployment.class).osImage }}"}}
    - {op: add, path: /spec/template/spec/dnsServers, valueFrom: {variable: dnsServers}}
    - {op: add, path: /spec/template/spec/dnsServer, valueFrom: {variable: "dnsServers[0]"}}
    - {op: add, path: /spec/template/spec/dnsServers/-, value: 9.9.9.9}`),
			topology: `
variables:
- {name: httpProxy, value: {url: "http://proxy"}}
- {name: mdConfig, value: {default-worker: {osImage: ubuntu}}}
- {name: dnsServers, value: [8.8.8.8, 1.1.1.1]}`,
			want: map[string]string{
				"DockerMachineTemplate c-small-i": `{template: {spec: {extraMounts: [{hostPath: /a}], url: "http://proxy", image: ubuntu, dnsServers: [8.8.8.8, 1.1.1.1, 9.9.9.9], dnsServer: 8.8.8.8}}}`,
				"DockerMachineTemplate c-large-i": `{template: {spec: {extraMounts: [{hostPath: /a}], url: "http://proxy", image: ubuntu, dnsServers: [8.8.8.8, 1.1.1.1, 9.9.9.9], dnsServer: 8.8.8.8}}}`,
			},
		},
		{
			reason: "etcdImageTag: a template renders an object",
			patches: `
- name: etcdImageTag
  definitions:
  - ` + onControlPlane + `
    jsonPatches:
    - op: add
      path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/etcd
      valueFrom:
        template: |
          local:
            imageTag: {{ .etcdImageTag }}`,
			topology: `variables: [{name: etcdImageTag, value: 3.5.1-0}]`,
			want: map[string]string{"KubeadmControlPlane c-x": `
version: v1.25.0
replicas: 3
machineTemplate: {metadata: {labels: {a: b}}, nodeDrainTimeout: 10s, infrastructureRef: {kind: DockerMachineTemplate, name: c-cp}}
kubeadmConfigSpec: {clusterConfiguration: {apiServer: {certSANs: [localhost]}, controllerManager: {extraArgs: {}}, etcd: {local: {imageTag: 3.5.1-0}}}}`},
		},
	})
}

func TestApplyOverridesOfTheControlPlane(t *testing.T) {
	applyAll(t, []applied{
		{
			reason: "an override for the control plane and its machines, the value of the Cluster for workers",
			patches: patch(onControlPlane, `
    - {op: add, path: /spec/template/spec/kubeadmConfigSpec, valueFrom: {template: "{files: [{path: {{ .workerMachineType }}}]}"}}`) + `
  - ` + onWorkers + `
    jsonPatches: [{op: add, path: /spec/template/spec/instanceType, valueFrom: {variable: workerMachineType}}]
  - selector: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, matchResources: {controlPlane: true}}
    jsonPatches: [{op: add, path: /spec/template/spec/instanceType, valueFrom: {variable: workerMachineType}}]`,
			topology: `
variables: [{name: workerMachineType, value: t3.large}]
controlPlane: {variables: {overrides: [{name: workerMachineType, value: t3.tiny}]}}`,
			want: map[string]string{
				"KubeadmControlPlane c-x": `
version: v1.25.0
replicas: 3
machineTemplate: {metadata: {labels: {a: b}}, nodeDrainTimeout: 10s, infrastructureRef: {kind: DockerMachineTemplate, name: c-cp}}
kubeadmConfigSpec: {files: [{path: t3.tiny}]}`,
				"DockerMachineTemplate c-cp":      `{template: {spec: {extraMounts: [{hostPath: /a}], instanceType: t3.tiny}}}`,
				"DockerMachineTemplate c-small-i": `{template: {spec: {extraMounts: [{hostPath: /a}], instanceType: t3.large}}}`,
				"DockerMachineTemplate c-large-i": `{template: {spec: {extraMounts: [{hostPath: /a}], instanceType: t3.large}}}`,
			},
		},
	})
}

func TestApplyBuiltinVariables(t *testing.T) {
	applyAll(t, []applied{
		{
			reason: "vnetName: a template can fall back to a builtin variable",
			patches: patch(`selector: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerClusterTemplate, matchResources: {infrastructureCluster: true}}`, `
    - {op: add, path: /spec/template/spec/vnet, valueFrom: {template: "{{ if .vnetName }}{{.vnetName}}{{else}}{{.builtin.cluster.name}}-vnet{{end}}"}}
    - {op: remove, path: /spec/template/spec/loadBalancer}`),
			want: map[string]string{"DockerCluster c-infra": `{vnet: c-vnet}`},
		},
		{
			reason: "all builtin variables of a MachineDeployment; integers remain integers",
			patches: patch(`selector: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, matchResources: {machineDeploymentClass: {names: ["gpu*"]}}}`, `
    - {op: replace, path: /spec/template/spec/files, valueFrom: {variable: builtin}}
    - {op: add, path: /spec/template/spec/size, valueFrom: {template: "{{ .size }}"}}`),
			topology: `{variables: [{name: size, value: 12345678}], controlPlane: {replicas: 3}}`,
			want: map[string]string{"KubeadmConfigTemplate c-gpu-b": `
template:
  spec:
    size: 12345678
    files:
      cluster: {name: c, namespace: default, metadata: {labels: {cluster.x-k8s.io/cluster-name: c, topology.cluster.x-k8s.io/owned: ""}}, topology: {class: class, classNamespace: default, classRef: {name: class, namespace: default}, version: v1.25.0}}
      machineDeployment: {class: gpu-worker, name: c-gpu-x, topologyName: gpu, replicas: 2, version: v1.24.0, bootstrap: {configRef: {name: c-gpu-b}}, infrastructureRef: {name: c-gpu-i}}`},
		},
		{
			reason:   "builtin variables of a control plane; replicas only if the topology sets them",
			patches:  patch(onControlPlane, `    - {op: add, path: /spec/template/spec/kubeadmConfigSpec, valueFrom: {variable: builtin.controlPlane}}`),
			topology: `{controlPlane: {replicas: 3}}`,
			want: map[string]string{"KubeadmControlPlane c-x": `
version: v1.25.0
replicas: 3
machineTemplate: {metadata: {labels: {a: b}}, nodeDrainTimeout: 10s, infrastructureRef: {kind: DockerMachineTemplate, name: c-cp}}
kubeadmConfigSpec: {name: c-x, replicas: 3, version: v1.25.0, machineTemplate: {infrastructureRef: {name: c-cp}}}`},
		},
	})
}

func TestApplyRules(t *testing.T) {
	applyAll(t, []applied{
		{
			reason: "fields of a control plane that the topology sets cannot be patched",
			patches: patch(onControlPlane, `
    - {op: add, path: /spec/template/spec/kubeadmConfigSpec, value: {}}
    - {op: add, path: /spec/template/spec/version, value: v1.0.0}
    - {op: add, path: /spec/template/spec/replicas, value: 9}
    - {op: add, path: /spec/template/spec/machineTemplate, value: {nodeDrainTimeout: 1s, nodeDeletionTimeout: 5s, metadata: {labels: {x: y}}, infrastructureRef: {name: z}}}`),
			want: map[string]string{"KubeadmControlPlane c-x": `
version: v1.25.0
replicas: 3
machineTemplate: {metadata: {labels: {a: b}}, nodeDrainTimeout: 10s, nodeDeletionTimeout: 5s, infrastructureRef: {kind: DockerMachineTemplate, name: c-cp}}
kubeadmConfigSpec: {}`},
		},
		{
			reason: "patches apply in order, each to the result of the previous ones; a MachinePool has objects, not templates",
			patches: `
- name: first
  definitions:
  - selector: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, matchResources: {machinePoolClass: {names: ["*"]}}}
    jsonPatches: [{op: add, path: /spec/template/spec/files/-, value: b}]
- name: second
  definitions:
  - selector: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, matchResources: {machinePoolClass: {names: ["*-pool"]}}}
    jsonPatches: [{op: add, path: /spec/template/spec/files/0, value: a}]`,
			want: map[string]string{"KubeadmConfig c-pool-b": `{files: [a, b]}`},
		},
		{
			reason: "a patch may replace the whole spec",
			patches: patch(onWorkers, `
    - {op: add, path: /spec, value: {template: {spec: {}}}}
    - {op: add, path: /spec/template/spec/a, value: 1}`),
			want: map[string]string{"DockerMachineTemplate c-small-i": `{template: {spec: {a: 1}}}`, "DockerMachineTemplate c-large-i": `{template: {spec: {a: 1}}}`},
		},
		{
			reason:  "a selector with another apiVersion selects nothing",
			patches: patch(`selector: {apiVersion: controlplane.cluster.x-k8s.io/v1, kind: KubeadmControlPlaneTemplate, matchResources: {controlPlane: true}}`, `    - {op: remove, path: /spec/x}`),
		},
	})
}

func TestApplyEnabledIf(t *testing.T) {
	applyAll(t, []applied{
		{reason: "enabledIf: a constant", patches: enabledIf("false")},
		{reason: "enabledIf: only true enables", patches: enabledIf("{{ 1 }}")},
		{reason: "enabledIf: a text that says so does not", patches: enabledIf(`{{ "true" | quote }}`)},
		{reason: "enabledIf: nothing but white space", patches: enabledIf(" {{ if .httpProxy }}true{{ end }} ")},
		{
			reason: "enabledIf: white space around it", patches: enabledIf(" true  "),
			want: map[string]string{"KubeadmControlPlane c-x": controlPlaneOn},
		},
		{
			reason: "enabledIf: a block with lines", patches: enabledIf("\n\n  {{ if true }}\n\n  true\n\n  {{ end }}\n\n"),
			want: map[string]string{"KubeadmControlPlane c-x": controlPlaneOn},
		},
		{
			reason: "enabledIf: another spelling", patches: enabledIf("{{ if true }}True{{ end }}"),
			want: map[string]string{"KubeadmControlPlane c-x": controlPlaneOn},
		},
		{
			reason: "enabledIf: numbers compared with literals of both kinds", patches: enabledIf(`{{ and (eq .builtin.controlPlane.replicas 3.0) (eq .builtin.controlPlane.replicas 3) (eq (printf "%.0f" .builtin.controlPlane.replicas) "3") }}`),
			topology: "controlPlane: {replicas: 3}", want: map[string]string{"KubeadmControlPlane c-x": controlPlaneOn},
		},
		{
			reason: "enabledIf: a value that is set", patches: enabledIf("{{ if .httpProxy }}true{{end}}"),
			topology: `variables: [{name: httpProxy, value: {url: x}}]`, want: map[string]string{"KubeadmControlPlane c-x": controlPlaneOn},
		},
		{reason: "enabledIf: a value that is not set", patches: enabledIf("{{ if .httpProxy }}true{{end}}")},
		{reason: "enabledIf: a field of a value that is not set", patches: enabledIf("{{ .httpProxy.enabled }}")},
		{
			reason: "enabledIf: a boolean field", patches: enabledIf("{{ .httpProxy.enabled }}"),
			topology: `variables: [{name: httpProxy, value: {enabled: true}}]`, want: map[string]string{"KubeadmControlPlane c-x": controlPlaneOn},
		},
		{
			reason: "enabledIf: by version, from the first builtin variable that exists", patches: enabledIf(`{{ semverCompare "^1.22.0" (coalesce .builtin.controlPlane.version .builtin.machineDeployment.version )}}`),
			want: map[string]string{"KubeadmControlPlane c-x": controlPlaneOn},
		},
		{reason: "enabledIf: another version", patches: enabledIf(`{{ semverCompare "1.21.1" .builtin.controlPlane.version }}`)},
	})
}

func applyAll(t *testing.T, tests []applied) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			in := fixture(t, definitions, tt.patches, tt.topology)
			want, sources := maps.Clone(in.targets()), in.sources()
			for name, spec := range tt.want {
				if _, known := want[name]; !known {
					t.Fatalf("bad test: no target %q", name)
				}
				want[name] = tree(t, spec)
			}
			for name := range want {
				want[name] = runtime.DeepCopyJSONValue(want[name])
			}
			engine, err := New(in.Class, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := engine.Apply(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, in.targets()); diff != "" {
				t.Errorf("%s: targets (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(sources, in.sources()); diff != "" {
				t.Errorf("%s: templates of the class changed (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestApplyErrors(t *testing.T) {
	tests := []struct {
		reason, patches, topology, want string
	}{
		{
			reason:  "a variable without a value",
			patches: patch(onControlPlane, `    - {op: add, path: /spec/template/spec/x, valueFrom: {variable: imageRepository}}`),
			want:    `patch "p" for KubeadmControlPlaneTemplate default/cp (control plane): definition 0, jsonPatch 0 (add /spec/template/spec/x): variable "imageRepository" is not set: set a value or a default, or disable the patch without a value by enabledIf`,
		},
		{
			reason: "a parent that does not exist",
			patches: patch(onWorkers, `
    - {op: add, path: /spec/template/spec/a, value: 1}
    - {op: add, path: /spec/template/spec/files/-, value: 1}`),
			want: `patch "p" for DockerMachineTemplate default/default-worker (MachineDeployment "small"): definition 0, jsonPatch 1 (add /spec/template/spec/files/-): /spec/template/spec/files does not exist: add it in an earlier patch, or to the template`,
		},
		{
			reason:  "a function with an undefined argument",
			patches: enabledIf(`{{ semverCompare "1.21.1" .builtin.machineDeployment.version }}`),
			want:    `patch "p" for KubeadmControlPlaneTemplate default/cp (control plane): enabledIf: template: :1:34: executing "" at <.builtin.machineDeployment.version>: invalid value; expected string`,
		},
		{
			reason:  "a template that renders invalid YAML",
			patches: patch(onControlPlane, `    - {op: add, path: /spec/template/spec/x, valueFrom: {template: "a: b: c"}}`),
			want:    `patch "p" for KubeadmControlPlaneTemplate default/cp (control plane): definition 0, jsonPatch 0 (add /spec/template/spec/x): the template rendered invalid YAML: yaml: mapping values are not allowed in this context`,
		},
		{
			reason:  "a template with too much output",
			patches: patch(onControlPlane, `    - {op: add, path: /spec/template/spec/x, valueFrom: {template: '{{ range until 100000 }}{{ repeat 1000 "x" }}{{ end }}'}}`),
			want:    `patch "p" for KubeadmControlPlaneTemplate default/cp (control plane): definition 0, jsonPatch 0 (add /spec/template/spec/x): the template renders more than 1048576 bytes`,
		},
		{
			reason:  "a removed spec",
			patches: patch(onControlPlane, `    - {op: remove, path: /spec/template/spec}`),
			want:    `KubeadmControlPlaneTemplate default/cp (control plane): spec.template.spec is not set after all patches`,
		},
		{
			reason:  "a spec that is not an object",
			patches: patch(onControlPlane, `    - {op: replace, path: /spec/template/spec, value: [1]}`),
			want:    `KubeadmControlPlaneTemplate default/cp (control plane): spec.template.spec must be an object, but is a list after all patches`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			in := fixture(t, definitions, tt.patches, tt.topology)
			before := runtime.DeepCopyJSON(in.targets())
			engine, err := New(in.Class, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := engine.Apply(t.Context(), in); message(err) != tt.want {
				t.Errorf("%s: error\n%v\nwant\n%s", tt.reason, err, tt.want)
			}
			if diff := cmp.Diff(before, in.targets()); diff != "" {
				t.Errorf("%s: targets changed despite the error (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// TestNewerControlPlane: in contract v1beta2, the topology sets fields elsewhere.
func TestNewerControlPlane(t *testing.T) {
	in := fixture(t, "[]", patch(onControlPlane, `
    - {op: add, path: /spec/template/spec/kubeadmConfigSpec, valueFrom: {variable: builtin.controlPlane.machineTemplate.infrastructureRef.name}}
    - {op: add, path: /spec/template/spec/machineTemplate, value: {spec: {minReadySeconds: 1, infrastructureRef: {name: z}, deletion: {nodeDrainTimeoutSeconds: 1}}}}`), "{}")
	machines := tree(t, `{spec: {infrastructureRef: {kind: DockerMachineTemplate, name: c-cp}, deletion: {nodeDrainTimeoutSeconds: 10}}}`)
	in.ControlPlane.Target.Object["spec"] = map[string]any{"version": "v1.25.0", "machineTemplate": machines}
	e, err := New(in.Class, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	want := tree(t, `
version: v1.25.0
kubeadmConfigSpec: c-cp
machineTemplate: {spec: {minReadySeconds: 1, infrastructureRef: {kind: DockerMachineTemplate, name: c-cp}, deletion: {nodeDrainTimeoutSeconds: 10}}}`)
	if diff := cmp.Diff(want, in.targets()["KubeadmControlPlane c-x"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
