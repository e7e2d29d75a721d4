package variables

import (
	"testing"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
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
