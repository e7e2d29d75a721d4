package variables

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// conflict is a variable that the class and an extension define differently, as in the documentation,
// and one that both define alike.
const conflict = `
- name: http-proxy
  definitionsConflict: true
  definitions:
  - {from: inline, required: false, schema: {openAPIV3Schema: {type: string, default: proxy.example.com}}}
  - from: lbImageRepository
    required: true
    schema: {openAPIV3Schema: {type: object, properties: {host: {type: string}, port: {type: integer, default: 80}}}}
- name: same
  definitionsConflict: false
  definitions:
  - {from: inline, required: true, schema: {openAPIV3Schema: {type: string, minLength: 1}}}
  - {from: lbImageRepository, required: true, schema: {openAPIV3Schema: {type: string, minLength: 1}}}
`

// topologyOf returns a topology of v1beta1 and the sources of its values.
func topologyOf(t testing.TB, source string) (clusterv1.Topology, Sources) {
	t.Helper()
	older, cluster := &clusterv1beta1.Cluster{}, &clusterv1.Cluster{}
	older.Spec.Topology = new(parse[clusterv1beta1.Topology](t, source))
	if err := conversion.Shared().Convert(t.Context(), older, cluster); err != nil {
		t.Fatal(err)
	}
	sources, err := ReadSources(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	return cluster.Spec.Topology, sources
}

func class(t testing.TB, inline, status string) *clusterv1.ClusterClass {
	t.Helper()
	out := &clusterv1.ClusterClass{}
	if inline != "" {
		merged, err := Merge(Source{From: clusterv1.VariableDefinitionFromInline, Variables: parse[[]clusterv1.ClusterClassVariable](t, inline)})
		if err != nil {
			t.Fatal(err)
		}
		out.Status.Variables = merged
	}
	out.Status.Variables = append(out.Status.Variables, parse[[]clusterv1.ClusterClassStatusVariable](t, status)...)
	return out
}

func compiled(t testing.TB, inline, status string) *Definitions {
	t.Helper()
	d, err := Compile(class(t, inline, status))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDefault(t *testing.T) {
	tests := []struct {
		reason                 string
		inline, status         string
		topology, wantTopology string
		want                   []string
	}{
		{
			reason:       "a variable without a value is set to its default, if it has one",
			inline:       documented,
			topology:     `{class: c, version: v1.29.0}`,
			wantTopology: `{class: c, version: v1.29.0, variables: [{name: imageRepository, value: registry.k8s.io}]}`,
		},
		{
			reason:       "values are kept",
			inline:       documented,
			topology:     `{class: c, version: v1.29.0, variables: [{name: imageRepository, value: my.custom.registry}]}`,
			wantTopology: `{class: c, version: v1.29.0, variables: [{name: imageRepository, value: my.custom.registry}]}`,
		},
		{
			reason:       "fields of values are defaulted",
			inline:       documented,
			topology:     `{class: c, version: v1.29.0, variables: [{name: imageRepository, value: a}, {name: podSecurityStandard, value: {enforce: restricted}}]}`,
			wantTopology: `{class: c, version: v1.29.0, variables: [{name: imageRepository, value: a}, {name: podSecurityStandard, value: {audit: restricted, enabled: true, enforce: restricted, warn: restricted}}]}`,
		},
		{
			reason: "overrides are defaulted but not added",
			inline: documented,
			topology: `
class: c
version: v1.29.0
workers:
  machineDeployments:
  - {class: a, name: md, variables: {overrides: [{name: podSecurityStandard, value: {}}]}}
  - {class: a, name: none}
  machinePools:
  - {class: a, name: mp, variables: {overrides: [{name: podSecurityStandard, value: {enabled: false}}]}}`,
			wantTopology: `
class: c
version: v1.29.0
variables: [{name: imageRepository, value: registry.k8s.io}]
workers:
  machineDeployments:
  - {class: a, name: md, variables: {overrides: [{name: podSecurityStandard, value: {audit: restricted, enabled: true, enforce: baseline, warn: restricted}}]}}
  - {class: a, name: none}
  machinePools:
  - {class: a, name: mp, variables: {overrides: [{name: podSecurityStandard, value: {audit: restricted, enabled: false, enforce: baseline, warn: restricted}}]}}`,
		},
		{
			reason:       "each of several conflicting definitions gets a value if it has a default",
			status:       conflict,
			topology:     `{class: c, version: v1.29.0}`,
			wantTopology: `{class: c, version: v1.29.0, variables: [{name: http-proxy, definitionFrom: inline, value: proxy.example.com}]}`,
		},
		{
			reason:       "a value with definitionFrom is defaulted by that definition",
			status:       conflict,
			topology:     `{class: c, version: v1.29.0, variables: [{name: http-proxy, definitionFrom: lbImageRepository, value: {host: a}}]}`,
			wantTopology: `{class: c, version: v1.29.0, variables: [{name: http-proxy, definitionFrom: lbImageRepository, value: {host: a, port: 80}}, {name: http-proxy, definitionFrom: inline, value: proxy.example.com}]}`,
		},
		{
			reason: "integers remain integers",
			inline: `[{name: v, required: false, schema: {openAPIV3Schema: {type: object, default: {}, properties: {n: {type: integer, default: 12345678901}}}}}]`,

			topology:     `{class: c, version: v1.29.0}`,
			wantTopology: `{class: c, version: v1.29.0, variables: [{name: v, value: {n: 12345678901}}]}`,
		},
		{
			reason:       "unknown variables are not changed",
			inline:       documented,
			topology:     `{class: c, version: v1.29.0, variables: [{name: imageRepository, value: a}, {name: unknown, value: {}}]}`,
			wantTopology: `{class: c, version: v1.29.0, variables: [{name: imageRepository, value: a}, {name: unknown, value: {}}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			topology, sources := topologyOf(t, tt.topology)
			d, path := compiled(t, tt.inline, tt.status).With(sources), field.NewPath("spec", "topology")
			got := texts(append(d.Default(&topology, path), d.DefaultConflicting(&topology, path)...))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: errors (-want +got):\n%s", tt.reason, diff)
			}
			want, wantSources := topologyOf(t, tt.wantTopology)
			if diff := cmp.Diff(want, topology) + cmp.Diff(wantSources, d.Sources(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: topology and sources (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// TestDefaultsThatCannotBeStored: the values of conflicting definitions need a source, which v1beta2 does not have.
func TestDefaultsThatCannotBeStored(t *testing.T) {
	topology, d, path := clusterv1.Topology{}, compiled(t, "", conflict), field.NewPath("spec", "topology")
	errs := append(d.Default(&topology, path), d.Validate(t.Context(), &topology, path)...)
	want := []string{
		`spec.topology.variables: Required value: variable "http-proxy" is required by "lbImageRepository": set a value for it with definitionFrom "lbImageRepository"`,
		`spec.topology.variables: Required value: variable "same" is required: set a value for it`,
	}
	if diff := cmp.Diff(want, texts(errs)); diff != "" || len(topology.Variables) > 0 {
		t.Errorf("variables %v, errors (-want +got):\n%s", topology.Variables, diff)
	}
}

func TestDefaultReportsInvalidJSON(t *testing.T) {
	topology, _ := topologyOf(t, `{class: c, version: v1, variables: [{name: podSecurityStandard, value: {}}]}`)
	topology.Variables[0].Value.Raw = []byte(`{`)
	errs := texts(compiled(t, documented, "").Default(&topology, field.NewPath("spec", "topology")))
	want := []string{`spec.topology.variables[0].value: Invalid value: "{": variable "podSecurityStandard": not valid JSON: unexpected end of JSON input`}
	if diff := cmp.Diff(want, errs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	const limits = `
- {name: cpu, required: false, schema: {openAPIV3Schema: {type: integer, minimum: 1, maximum: 8, exclusiveMaximum: true}}}
- {name: zone, required: false, schema: {openAPIV3Schema: {type: string, enum: [a, b]}}}
- {name: list, required: false, schema: {openAPIV3Schema: {type: array, maxItems: 1, items: {type: object, required: [id], properties: {id: {type: string, pattern: "^x"}}}}}}
- {name: open, required: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}}}
- {name: required, required: true, schema: {openAPIV3Schema: {type: string}}}
`
	tests := []struct {
		reason         string
		inline, status string
		topology       string
		want           []string
	}{
		{"values from the documentation are valid", documented, "", `
variables:
- {name: imageRepository, value: my.custom.registry}
- {name: httpProxy, value: {url: "http://proxy", noProxy: a}}
- {name: mdConfig, value: {default-worker: {osImage: ubuntu}}}
- {name: dnsServers, value: [8.8.8.8]}
- {name: freeFormObject, value: {any: {thing: [1]}}}
- {name: podSecurityStandard, value: {enabled: true, enforce: restricted}}`, nil},
		{"a required variable must have a value", documented, "", `{}`,
			[]string{`spec.topology.variables: Required value: variable "imageRepository" is required: set a value for it`}},
		{"required variables are not required in overrides", limits, "", `
variables: [{name: required, value: x}]
workers: {machineDeployments: [{class: a, name: a, variables: {overrides: [{name: cpu, value: 2}]}}]}`, nil},
		{"an override does not replace a missing value of the Cluster", limits, "", `
workers: {machineDeployments: [{class: a, name: a, variables: {overrides: [{name: required, value: x}]}}]}`,
			[]string{`spec.topology.variables: Required value: variable "required" is required: set a value for it`}},
		{"unknown variables are rejected", limits, "", `{variables: [{name: required, value: x}, {name: foo, value: x}]}`,
			[]string{`spec.topology.variables[1].name: Required value: no definition for variable "foo": the ClusterClass defines "cpu", "zone", "list", "open", "required"; remove the value or define the variable`}},
		{"a value can be set only once", limits, "", `{variables: [{name: required, value: x}, {name: required, value: x}]}`,
			[]string{`spec.topology.variables[1]: Duplicate value: "required"`}},
		{"values are validated wherever they can be set", limits, "", `
variables: [{name: required, value: x}, {name: cpu, value: 8}]
controlPlane: {variables: {overrides: [{name: cpu, value: -1}]}}
workers:
  machineDeployments: [{class: a, name: a, variables: {overrides: [{name: cpu, value: 0}]}}]
  machinePools: [{class: a, name: a, variables: {overrides: [{name: zone, value: c}]}}]`,
			[]string{
				`spec.topology.variables[1].value: Invalid value: 8: variable "cpu": should be less than 8`,
				`spec.topology.controlPlane.variables.overrides[0].value: Invalid value: -1: variable "cpu": should be greater than or equal to 1`,
				`spec.topology.workers.machineDeployments[0].variables.overrides[0].value: Invalid value: 0: variable "cpu": should be greater than or equal to 1`,
				`spec.topology.workers.machinePools[0].variables.overrides[0].value: Unsupported value: "c": variable "zone": supported values: "a", "b"`,
			}},
		{"a value must have the type of its variable", limits, "", `{variables: [{name: required, value: 1}, {name: cpu, value: "1"}]}`,
			[]string{
				`spec.topology.variables[0].value: Invalid value: "integer": variable "required": must be of type string: "integer"`,
				`spec.topology.variables[1].value: Invalid value: "string": variable "cpu": must be of type integer: "string"`,
			}},
		{"nested values are validated", limits, "", `{variables: [{name: required, value: x}, {name: list, value: [{id: b}, {}]}]}`,
			[]string{
				`spec.topology.variables[1].value: Too many: 2: variable "list": must have at most 1 item`,
				`spec.topology.variables[1].value[0].id: Invalid value: "b": variable "list": should match '^x'`,
				`spec.topology.variables[1].value[1].id: Required value: variable "list": required by the schema`,
			}},
		{"unknown fields are rejected", documented, "", `{variables: [{name: imageRepository, value: x}, {name: httpProxy, value: {url: x, user: y}}, {name: mdConfig, value: {a: {b: c}}}]}`,
			[]string{
				`spec.topology.variables[1].value: Invalid value: "user": variable "httpProxy": field "user" is not in the schema of the variable`,
				`spec.topology.variables[2].value: Invalid value: "a.b": variable "mdConfig": field "a.b" is not in the schema of the variable`,
			}},
		{"unknown fields are accepted if the schema preserves them", limits, "", `{variables: [{name: required, value: x}, {name: open, value: {a: b, c: d}}]}`, nil},
		{"each of several conflicting definitions requires a value", "", conflict, `{variables: [{name: http-proxy, value: x}, {name: same, value: x}]}`,
			[]string{`spec.topology.variables[0].definitionFrom: Required value: variable "http-proxy" has conflicting definitions: set one value for each of "inline", "lbImageRepository"`}},
		{"values for conflicting definitions, as in the documentation", "", conflict, `
variables:
- {name: http-proxy, definitionFrom: inline, value: "http://proxy.example2.com:1234"}
- {name: http-proxy, definitionFrom: lbImageRepository, value: {host: proxy.example2.com, port: 1234}}
- {name: same, value: x}`, nil},
		{"each definition can be required", "", conflict, `{variables: [{name: http-proxy, definitionFrom: inline, value: x}, {name: same, definitionFrom: inline, value: x}]}`,
			[]string{
				`spec.topology.variables: Required value: variable "http-proxy" is required by "lbImageRepository": set a value for it with definitionFrom "lbImageRepository"`,
				`spec.topology.variables: Required value: variable "same" is required by "lbImageRepository": set a value for it with definitionFrom "lbImageRepository"`,
			}},
		{"values with and without definitionFrom cannot be mixed", "", conflict, `{variables: [{name: same, value: x}, {name: same, definitionFrom: inline, value: x}, {name: http-proxy, definitionFrom: lbImageRepository, value: {}}]}`,
			[]string{`spec.topology.variables[0].definitionFrom: Invalid value: "": variable "same" has values with and without definitionFrom: set it on all of them, or keep one value without it`}},
		{"definitionFrom must be a source of the variable", "", conflict, `{variables: [{name: same, definitionFrom: foo, value: x}, {name: same, definitionFrom: inline, value: x},  {name: same, definitionFrom: lbImageRepository, value: x}, {name: http-proxy, definitionFrom: lbImageRepository, value: {}}]}`,
			[]string{`spec.topology.variables[0].definitionFrom: Invalid value: "foo": variable "same" is defined by "inline", "lbImageRepository" only`}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			topology, sources := topologyOf(t, tt.topology)
			got := texts(compiled(t, tt.inline, tt.status).With(sources).Validate(t.Context(), &topology, field.NewPath("spec", "topology")))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: errors (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	c := class(b, documented, "")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDefaultAndValidate(b *testing.B) {
	d := compiled(b, documented, "")
	topology, _ := topologyOf(b, `
class: c
version: v1.29.0
variables:
- {name: imageRepository, value: my.custom.registry}
- {name: httpProxy, value: {url: "http://proxy", noProxy: a}}
- {name: podSecurityStandard, value: {audit: restricted, enabled: true, enforce: restricted, warn: restricted}}`)
	path := field.NewPath("spec", "topology")
	b.ReportAllocs()
	for b.Loop() {
		copied := topology.DeepCopy()
		if errs := append(d.Default(copied, path), d.Validate(b.Context(), copied, path)...); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
