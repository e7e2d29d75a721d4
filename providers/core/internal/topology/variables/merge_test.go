package variables

import (
	"testing"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Limits above 2^53 that differ are a conflict, although they are the same float64.
func TestLargeLimitsConflict(t *testing.T) {
	limited := func(maximum int64) clusterv1.ClusterClassStatusVariableDefinition {
		schema := clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{Type: "integer", Maximum: ptr.To(maximum)}}
		return clusterv1.ClusterClassStatusVariableDefinition{Schema: schema}
	}
	for second, want := range map[int64]bool{9007199254740993: true, 9007199254740992: false} {
		got, err := conflicting([]clusterv1.ClusterClassStatusVariableDefinition{limited(9007199254740992), limited(second)})
		if err != nil || got != want {
			t.Errorf("maximum %d: conflict %t, want %t; %v", second, got, want, err)
		}
	}
}

// TestFalseIsNotSet: a schema that sets what is false is no other schema.
func TestFalseIsNotSet(t *testing.T) {
	define := func(schema string) []clusterv1.ClusterClassVariable {
		return parse[[]clusterv1.ClusterClassVariable](t, `[{name: v, required: false, schema: {openAPIV3Schema: `+schema+`}}]`)
	}
	for other, conflicts := range map[string]bool{
		`{type: object, properties: {a: {type: array, uniqueItems: false, items: {type: string}}}}`:                false,
		`{type: object, properties: {a: {type: array, uniqueItems: true, items: {type: string}}}}`:                 true,
		`{type: object, properties: {a: {type: array, items: {type: string}}}, x-kubernetes-int-or-string: false}`: false,
	} {
		merged, err := Merge(
			Source{From: "inline", Variables: define(`{type: object, properties: {a: {type: array, items: {type: string}}}}`)},
			Source{From: "ext", Variables: define(other)})
		if err != nil || *merged[0].DefinitionsConflict != conflicts {
			t.Errorf("%s: %v, %v, want %t", other, merged, err, conflicts)
		}
	}
}
