package variables

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ruled are variables with CEL rules and combinators.
const ruled = `
- name: size
  schema:
    openAPIV3Schema:
      type: integer
      x-kubernetes-validations:
      - {rule: self % 2 == 1, message: must be odd}
      - {rule: self >= oldSelf, messageExpression: "oldSelf > 6 ? 'must not shrink from more than 6' : 'must not shrink'", reason: FieldValueForbidden}
- name: range
  schema:
    openAPIV3Schema:
      type: object
      properties:
        min: {type: integer}
        max: {type: integer}
      x-kubernetes-validations:
      - {rule: self.min <= self.max, fieldPath: .max}
- name: limit
  schema:
    openAPIV3Schema: {x-kubernetes-int-or-string: true, allOf: [{maximum: 10}, {pattern: "^[0-9]+%$"}]}
- name: labels
  schema:
    openAPIV3Schema: {type: object, additionalProperties: {type: string}, minProperties: 1, maxProperties: 2}
- name: place
  schema:
    openAPIV3Schema:
      type: object
      properties: {zone: {type: string}, region: {type: string}}
      oneOf: [{required: [zone]}, {required: [region]}]
      allOf: [{properties: {zone: {minLength: 2}}}]
- name: word
  schema:
    openAPIV3Schema: {type: string, not: {enum: [none]}}
- name: zones
  schema:
    openAPIV3Schema:
      type: array
      maxItems: 5
      items: {type: string, maxLength: 10, x-kubernetes-validations: [{rule: self.startsWith('zone-')}]}
`

func TestRules(t *testing.T) {
	const overridden = `{variables: [{name: size, value: 5}], workers: {machineDeployments: [{class: c, name: a, variables: {overrides: [{name: size, value: 7}]}}]}}`
	tests := []struct {
		reason        string
		old, topology string
		want          []string
	}{
		{"all rules are obeyed", "", `
variables:
- {name: size, value: 3}
- {name: range, value: {min: 1, max: 2}}
- {name: limit, value: 10}
- {name: labels, value: {a: b}}
- {name: place, value: {zone: aa}}
- {name: word, value: some}
- {name: zones, value: [zone-a]}`, nil},
		{"no rule is", "", `
variables:
- {name: size, value: 2}
- {name: range, value: {min: 3, max: 2}}
- {name: limit, value: 11}
- {name: labels, value: {}}
- {name: place, value: {zone: a, region: b}}
- {name: word, value: none}
- {name: zones, value: [zone-a, b]}`, []string{
			`spec.topology.variables[0].value: Invalid value: 2: variable "size": must be odd`,
			`spec.topology.variables[1].value.max: Invalid value: variable "range": failed rule: self.min <= self.max`,
			`spec.topology.variables[2].value: Invalid value: "": variable "limit": must validate all the schemas (allOf)`,
			`spec.topology.variables[2].value: Invalid value: 11: variable "limit": should be less than or equal to 10`,
			`spec.topology.variables[3].value: Invalid value: 0: variable "labels": should have at least 1 properties`,
			`spec.topology.variables[4].value: Invalid value: "": variable "place": must validate all the schemas (allOf). None validated`,
			`spec.topology.variables[4].value: Invalid value: "": variable "place": must validate one and only one schema (oneOf). Found 2 valid alternatives`,
			`spec.topology.variables[4].value.zone: Invalid value: "a": variable "place": should be at least 2 chars long`,
			`spec.topology.variables[5].value: Invalid value: "": variable "word": must not validate the schema (not)`,
			`spec.topology.variables[6].value[1]: Invalid value: "b": variable "zones": failed rule: self.startsWith('zone-')`,
		}},
		{"an integer or a string may be a string", "", `{variables: [{name: limit, value: 50%}]}`, nil},
		{"a rule about changes is not for new values", "", `{variables: [{name: size, value: 3}]}`, nil},
		{"nor for those that other Clusters have", `{variables: [{name: limit, value: 5}]}`, `{variables: [{name: size, value: 3}]}`, nil},
		{"a change that its rule allows", `{variables: [{name: size, value: 3}]}`, `{variables: [{name: size, value: 5}]}`, nil},
		{"a change that its rule forbids", `{variables: [{name: size, value: 5}]}`, `{variables: [{name: limit, value: 1}, {name: size, value: 3}]}`,
			[]string{`spec.topology.variables[1].value: Forbidden: variable "size": must not shrink`}},
		{"a previous value of another type, of another class", `{variables: [{name: size, value: large}]}`, `{variables: [{name: size, value: 3}]}`, nil},
		{"an override is compared with the previous one of the same workers", overridden,
			`{variables: [{name: size, value: 5}], workers: {machineDeployments: [{class: c, name: b, variables: {overrides: [{name: size, value: 3}]}}, {class: c, name: a, variables: {overrides: [{name: size, value: 5}]}}]}}`,
			[]string{`spec.topology.workers.machineDeployments[1].variables.overrides[0].value: Forbidden: variable "size": must not shrink from more than 6`}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			topology, sources := topologyOf(t, tt.topology)
			var previous *Previous
			if tt.old != "" {
				old, oldSources := topologyOf(t, tt.old)
				previous = &Previous{Topology: &old, Sources: oldSources}
			}
			got := texts(compiled(t, ruled, "").With(sources).ValidateUpdate(t.Context(), &topology, previous, field.NewPath("spec", "topology")))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDefinitionsWithRules(t *testing.T) {
	if errs := ValidateDefinitions(t.Context(), parse[[]clusterv1.ClusterClassVariable](t, ruled), field.NewPath("spec", "variables")); len(errs) > 0 {
		t.Errorf("valid definitions: %v", errs)
	}
	tests := []struct{ reason, schema, want string }{
		{"an unknown identifier", `{type: string, x-kubernetes-validations: [{rule: other == ''}]}`, `x-kubernetes-validations[0].rule: Invalid value: "other == ''": compilation failed: ERROR: <input>:1:1: undeclared reference to 'other'`},
		{"a rule that is no condition", `{type: string, x-kubernetes-validations: [{rule: self}]}`, `x-kubernetes-validations[0].rule: Invalid value: "self": cel expression must evaluate to a bool`},
		{"an empty rule", `{type: string, x-kubernetes-validations: [{rule: " "}]}`, `x-kubernetes-validations[0].rule: Required value: the expression of the rule is required`},
		{"a message with a line break", `{type: string, x-kubernetes-validations: [{rule: self != '', message: "a\nb"}]}`, `x-kubernetes-validations[0].message: Invalid value: "a\nb": must not contain line breaks`},
		{"an unknown reason", `{type: string, x-kubernetes-validations: [{rule: self != '', reason: Other}]}`, `x-kubernetes-validations[0].reason: Unsupported value: "Other"`},
		{"an invalid message expression", `{type: string, x-kubernetes-validations: [{rule: self != '', messageExpression: "1"}]}`, `x-kubernetes-validations[0].messageExpression: Invalid value: "1": messageExpression must evaluate to a string`},
		{"a field that does not exist", `{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: self.a != '', fieldPath: .b}]}`, `x-kubernetes-validations[0].fieldPath: Invalid value: ".b"`},
		{"a rule that is too expensive", `{type: array, items: {type: string}, x-kubernetes-validations: [{rule: "self.all(x, self.all(y, x.contains(y)))"}]}`, `x-kubernetes-validations[0].rule: Forbidden: the estimated cost of the expression is`},
		{"limits make it affordable", `{type: array, maxItems: 10, items: {type: string, maxLength: 10}, x-kubernetes-validations: [{rule: "self.all(x, self.all(y, x.contains(y)))"}]}`, ``},
		{"a rule that is evaluated too often", `{type: array, items: {type: array, items: {type: string, x-kubernetes-validations: [{rule: "self.matches('^(a|b)*$')"}]}}}`, `items.items.x-kubernetes-validations[0].rule: Forbidden: the estimated cost of the expression is`},
		{"elements of lists have no previous value", `{type: array, maxItems: 10, items: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf}]}}`, `items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf must not be used within lists`},
		{"a default that breaks a rule", `{type: string, default: a, x-kubernetes-validations: [{rule: self == 'b'}]}`, `default: Invalid value: "a": failed rule: self == 'b'`},
		{"an example that breaks a rule", `{type: string, example: a, x-kubernetes-validations: [{rule: self == 'b'}]}`, `example: Invalid value: "a": failed rule: self == 'b'`},
		{"a value of an enum that breaks a rule", `{type: string, enum: [b, a], x-kubernetes-validations: [{rule: self == 'b'}]}`, `enum[1]: Invalid value: "a": failed rule: self == 'b'`},
		{"a default that matches no alternative", `{type: string, default: a, anyOf: [{enum: [b]}, {enum: [c]}]}`, `default: Invalid value: "": must validate at least one schema (anyOf)`},
		{"rules of a free-form object", `{type: object, x-kubernetes-validations: [{rule: has(self.a)}]}`, `x-kubernetes-validations[0].rule: Invalid value: "has(self.a)": compilation failed: ERROR: <input>:1:4: undefined field 'a'`},
		{"rules within a combinator", `{type: string, anyOf: [{x-kubernetes-validations: [{rule: self != ''}]}]}`, `anyOf[0].x-kubernetes-validations: Forbidden: must not be set within allOf, anyOf, oneOf and not`},
		{"a type within a combinator", `{type: string, allOf: [{type: string}]}`, `allOf[0].type: Forbidden: must be empty to be structural`},
		{"a pattern within a combinator", `{type: string, not: {pattern: "(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}(.{500}){2}"}}`, `not.pattern: Invalid value: a regular expression is too large`},
		{"no type", `{minimum: 1}`, `type: Unsupported value: ""`},
		{"an integer or a string has no type", `{type: string, x-kubernetes-int-or-string: true}`, `type: Forbidden: must be empty if x-kubernetes-int-or-string is true`},
		{"metadata", `{type: string, x-metadata: {labels: {a: b}, annotations: {example.com/title: "A title"}}}`, ``},
		{"invalid metadata", `{type: object, properties: {a: {type: string, x-metadata: {labels: {a: "b c"}}}}}`, `properties[a].x-metadata.labels: Invalid value: "b c"`},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			definition := clusterv1.ClusterClassVariable{Name: "v", Schema: clusterv1.VariableSchema{OpenAPIV3Schema: parse[clusterv1.JSONSchemaProps](t, tt.schema)}}
			got := strings.Join(texts(ValidateDefinitions(t.Context(), []clusterv1.ClusterClassVariable{definition}, field.NewPath("variables"))), "\n")
			want := "variables[0].schema.openAPIV3Schema." + tt.want
			if tt.want == "" && got != "" || !strings.Contains(got, strings.TrimSuffix(want, ".")) && tt.want != "" {
				t.Errorf("errors\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestEffortOfCombinators is about a pattern that only a combinator has: it takes as long as others.
func TestEffortOfCombinators(t *testing.T) {
	s, errs := compile(new(parse[clusterv1.JSONSchemaProps](t, `{type: string, allOf: [{pattern: "^(a.{900})$"}]}`)), field.NewPath("schema"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if got := texts(s.validate(t.Context(), new(raw(t, strings.Repeat("a", 1<<20))), nil, field.NewPath("value"))); len(got) != 1 || !strings.Contains(got[0], "too large to be validated") {
		t.Errorf("errors %v", got)
	}
}
