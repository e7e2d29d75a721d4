package variables

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// parse parses YAML into an API type. Unknown fields are errors.
func parse[T any](t testing.TB, source string) T {
	t.Helper()
	var out T
	if err := yaml.UnmarshalStrict([]byte(source), &out); err != nil {
		t.Fatalf("bad test data: %v\n%s", err, source)
	}
	return out
}

// texts returns the messages of errors.
func texts(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// documented are the example variables of the documentation.
const documented = `
- name: imageRepository
  required: true
  schema:
    openAPIV3Schema:
      type: string
      description: ImageRepository is the container registry to pull images from.
      default: registry.k8s.io
      example: registry.k8s.io
- name: httpProxy
  required: false
  schema:
    openAPIV3Schema:
      type: object
      properties:
        url: {type: string}
        noProxy: {type: string}
- name: mdConfig
  required: false
  schema:
    openAPIV3Schema:
      type: object
      additionalProperties:
        type: object
        properties:
          osImage: {type: string}
- name: dnsServers
  required: false
  schema:
    openAPIV3Schema:
      type: array
      items: {type: string}
- name: freeFormObject
  required: false
  schema:
    openAPIV3Schema: {type: object}
- name: podSecurityStandard
  required: false
  schema:
    openAPIV3Schema:
      type: object
      properties:
        enabled: {type: boolean, default: true}
        enforce: {type: string, default: baseline, pattern: "privileged|baseline|restricted"}
        audit: {type: string, default: restricted, pattern: "privileged|baseline|restricted"}
        warn: {type: string, default: restricted, pattern: "privileged|baseline|restricted"}
`

func TestValidateDefinitions(t *testing.T) {
	schema := func(s string) string { return "- {name: v, required: false, schema: {openAPIV3Schema: " + s + "}}" }
	at := "spec.variables[0].schema.openAPIV3Schema"
	tests := []struct {
		reason    string
		variables string
		want      []string
	}{
		{"the variables of the documentation are valid", documented, nil},
		{"every type is accepted", schema(`{type: object, properties: {a: {type: array, items: {type: integer}}, b: {type: number}, c: {type: boolean}, d: {type: string}}}`), nil},
		{"a name is required", `- {name: "", required: true, schema: {openAPIV3Schema: {type: string}}}`,
			[]string{`spec.variables[0].name: Required value: the name of the variable is required`}},
		{"builtin is reserved", `- {name: builtin, required: true, schema: {openAPIV3Schema: {type: string}}}`,
			[]string{`spec.variables[0].name: Invalid value: "builtin": "builtin" is reserved for the builtin variables: choose another name`}},
		{"a dot is the separator of fields", `- {name: a.b, required: true, schema: {openAPIV3Schema: {type: string}}}`,
			[]string{`spec.variables[0].name: Invalid value: "a.b": must not contain ".": it separates the fields of a variable in patches`}},
		{"names are unique", "- {name: a, required: true, schema: {openAPIV3Schema: {type: string}}}\n- {name: a, required: true, schema: {openAPIV3Schema: {type: string}}}",
			[]string{`spec.variables[1].name: Duplicate value: "a"`}},
		{"labels are validated", `- {name: a, required: true, deprecatedV1Beta1Metadata: {labels: {"a b": c}}, schema: {openAPIV3Schema: {type: string}}}`,
			[]string{`spec.variables[0].deprecatedV1Beta1Metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`}},
		{"a type is required", schema(`{type: ""}`),
			[]string{at + `.type: Unsupported value: "": supported values: "array", "boolean", "integer", "number", "object", "string"`}},
		{"nested types are validated", schema(`{type: object, properties: {a: {type: null}, b: {type: foo}}}`),
			[]string{
				at + `.properties[a].type: Unsupported value: "": supported values: "array", "boolean", "integer", "number", "object", "string"`,
				at + `.properties[b].type: Unsupported value: "foo": supported values: "array", "boolean", "integer", "number", "object", "string"`,
			}},
		{"an array requires items", schema(`{type: array}`), []string{at + `.items: Required value: must be specified`}},
		{"properties and additionalProperties are mutually exclusive", schema(`{type: object, properties: {a: {type: string}}, additionalProperties: {type: string}}`),
			[]string{at + `.additionalProperties: Forbidden: properties and additionalProperties are mutually exclusive: an object has either known fields or arbitrary keys`}},
		{"a pattern must compile", schema(`{type: string, pattern: "("}`),
			[]string{at + ".pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"}},
		{"a default must have the type of its schema", schema(`{type: string, default: 1}`),
			[]string{at + `.default: Invalid value: "integer": must be of type string: "integer"`}},
		{"a default must be within the limits of its schema", schema(`{type: string, default: abc, maxLength: 2}`),
			[]string{at + `.default: Too long: may not be more than 2 bytes`}},
		{"a nested default is validated", schema(`{type: object, properties: {a: {type: integer, default: x}}}`),
			[]string{at + `.properties[a].default: Invalid value: "string": must be of type integer: "string"`}},
		{"a default must not have unknown fields", schema(`{type: object, default: {b: 1}, properties: {a: {type: integer}}}`),
			[]string{at + `.default: Invalid value: {"b":1}: must not have unknown fields`}},
		{"an example must be valid", schema(`{type: integer, example: x}`),
			[]string{at + `.example: Invalid value: "string": must be of type integer: "string"`}},
		{"an example must not have unknown fields", schema(`{type: object, example: {b: 1}, properties: {a: {type: integer}}}`),
			[]string{at + `.example: Invalid value: "b": field "b" is not in the schema of the variable`}},
		{"values of an enum must have its type", schema(`{type: object, properties: {a: {type: string, enum: [x, 1]}}}`),
			[]string{at + `.properties[a].enum[1]: Invalid value: "integer": must be of type string: "integer"`}},
		{"a default must be in the enum", schema(`{type: string, default: c, enum: [a, b]}`),
			[]string{at + `.default: Unsupported value: "c": supported values: "a", "b"`}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			variables := parse[[]clusterv1.ClusterClassVariable](t, tt.variables)
			got := texts(ValidateDefinitions(t.Context(), variables, field.NewPath("spec", "variables")))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: errors (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestValidateDefinitionsInvalidJSON(t *testing.T) {
	variables := parse[[]clusterv1.ClusterClassVariable](t, `[{name: v, required: true, schema: {openAPIV3Schema: {type: string, default: x}}}]`)
	variables[0].Schema.OpenAPIV3Schema.Default.Raw = []byte(`"x`)
	errs := ValidateDefinitions(t.Context(), variables, field.NewPath("v"))
	if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "v[0].schema.openAPIV3Schema.default: Invalid value: ") {
		t.Errorf("a default with invalid JSON: got %v", errs)
	}
}

func TestMerge(t *testing.T) {
	inline := parse[[]clusterv1.ClusterClassVariable](t, `
- {name: no-proxy, required: true, schema: {openAPIV3Schema: {type: string, default: internal.com}}}
- {name: http-proxy, required: false, schema: {openAPIV3Schema: {type: string, default: proxy.example.com}}}
- {name: same, required: false, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}, b: {type: string, default: {x: 1}}}}}}
`)
	patch := parse[[]clusterv1.ClusterClassVariable](t, `
- {name: http-proxy, required: false, schema: {openAPIV3Schema: {type: string, default: different.example.com}}}
- {name: same, required: false, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}, b: {type: string, default: {x: 1}}}}}}
- {name: own, required: false, schema: {openAPIV3Schema: {type: string}}}
`)
	b := patch[1].Schema.OpenAPIV3Schema.Properties["b"]
	b.Default.Raw = []byte("{ \"x\" : 1 }")
	other := parse[[]clusterv1.ClusterClassVariable](t, `[{name: own, required: true, schema: {openAPIV3Schema: {type: string}}}]`)

	got, err := Merge(Source{From: "inline", Variables: inline}, Source{From: "lbImageRepository", Variables: patch}, Source{From: "other", Variables: other})
	if err != nil {
		t.Fatal(err)
	}
	type summary struct {
		Name     string
		Conflict bool
		From     []string
	}
	var summaries []summary
	for _, v := range got {
		s := summary{Name: v.Name, Conflict: ptr.Deref(v.DefinitionsConflict, false)}
		for _, d := range v.Definitions {
			s.From = append(s.From, d.From)
		}
		summaries = append(summaries, s)
	}
	want := []summary{
		{"no-proxy", false, []string{"inline"}},
		{"http-proxy", true, []string{"inline", "lbImageRepository"}},
		{"same", false, []string{"inline", "lbImageRepository"}},
		{"own", true, []string{"lbImageRepository", "other"}},
	}
	if diff := cmp.Diff(want, summaries); diff != "" {
		t.Errorf("variables are ordered by first definition; schema or required conflict, white space does not (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(inline[0].Schema, got[0].Definitions[0].Schema); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
}
