package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

func TestOf(t *testing.T) {
	yes := condition.True("Applied")
	no := condition.False("Applied", clusterv1.ConditionSeverityWarning, "NoSuchSecret", "Secret s does not exist")
	unknown := condition.Unknown("Applied", "NotInstalled", "a kind is not installed")
	for _, tt := range []struct {
		reason string
		older  *clusterv1.Condition
		want   metav1.Condition
	}{
		{"there is none", nil, None("ResourcesApplied")},
		{"True", &yes, True("ResourcesApplied", "Yes", "")},
		{"False has another reason", &no, False("ResourcesApplied", "No", "Secret s does not exist")},
		{"Unknown keeps its reason", &unknown, Unknown("ResourcesApplied", "NotInstalled", "a kind is not installed")},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Of("ResourcesApplied", tt.older, "Yes", "No")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
