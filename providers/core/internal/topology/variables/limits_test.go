package variables

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func raw(t *testing.T, value any) apiextensionsv1.JSON {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return apiextensionsv1.JSON{Raw: encoded}
}

func nested(depth int) clusterv1.JSONSchemaProps {
	s := clusterv1.JSONSchemaProps{Type: "string"}
	for range depth {
		s = clusterv1.JSONSchemaProps{Type: "object", Properties: map[string]clusterv1.JSONSchemaProps{"x": s}}
	}
	return s
}

func TestExpensiveSchemas(t *testing.T) {
	many := clusterv1.JSONSchemaProps{Type: "integer"}
	for i := range 50_000 {
		many.Enum = append(many.Enum, raw(t, i))
	}
	unlike := many
	unlike.Enum = append(slices.Clip(unlike.Enum), raw(t, "text"))
	for _, tc := range []struct {
		reason string
		schema clusterv1.JSONSchemaProps
		want   string
	}{
		{"the maximum depth", nested(maxDepth), ""},
		{"too deep", nested(5000), "the schema is nested more than 100 levels deep"},
		{"a long enum", many, ""},
		{"a long enum with a wrong value", unlike, "enum[50000]"},
		{"a large pattern", clusterv1.JSONSchemaProps{Type: "string", Pattern: strings.Repeat("(.{500}){2}", 100)}, "schema.pattern: Invalid value: a regular expression is too large"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			errs := validateSchema(t.Context(), &tc.schema, field.NewPath("schema"))
			if got := fmt.Sprint(errs.ToAggregate()); (tc.want == "") != (len(errs) == 0) || !strings.Contains(got, tc.want) {
				t.Errorf("errors = %.300s, want %q", got, tc.want)
			}
		})
	}
}

func TestExpensiveValues(t *testing.T) {
	numbers := make([]int, 200_000)
	for i := range numbers {
		numbers[i] = i
	}
	text := strings.Repeat("a", 1_000_000)
	for _, tc := range []struct {
		reason string
		schema clusterv1.JSONSchemaProps
		value  any
		want   string
	}{
		{"a list of unique elements", clusterv1.JSONSchemaProps{Type: "array", UniqueItems: ptr.To(true), Items: &clusterv1.JSONSchemaProps{Type: "integer"}}, numbers, "too large to be validated"},
		{"a short list of unique elements", clusterv1.JSONSchemaProps{Type: "array", UniqueItems: ptr.To(true), Items: &clusterv1.JSONSchemaProps{Type: "integer"}}, numbers[:500], ""},
		{"a long list", clusterv1.JSONSchemaProps{Type: "array", Items: &clusterv1.JSONSchemaProps{Type: "integer"}}, numbers, ""},
		{"a long string with a large pattern", clusterv1.JSONSchemaProps{Type: "string", Pattern: "^(a{0,500}b{0,500})*$"}, text, "too large to be validated"},
		{"a long string with a small pattern", clusterv1.JSONSchemaProps{Type: "string", Pattern: "^a*$"}, text, ""},
		{"a long string in a map", clusterv1.JSONSchemaProps{Type: "object", AdditionalProperties: &clusterv1.JSONSchemaProps{Type: "string", Pattern: "^(a{0,500}b{0,500})*$"}},
			map[string]string{"k": text}, "too large to be validated"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s, errs := compile(&tc.schema, field.NewPath("schema"))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			value := raw(t, tc.value)
			errs = s.validate(t.Context(), &value, nil, field.NewPath("value"))
			if got := fmt.Sprint(errs.ToAggregate()); (tc.want == "") != (len(errs) == 0) || !strings.Contains(got, tc.want) {
				t.Errorf("errors = %.300s, want %q", got, tc.want)
			}
		})
	}
}
