package resourceset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

func TestReports(t *testing.T) {
	no := func(reason, message string) clusterv1.Condition {
		return condition.False("ResourcesApplied", clusterv1.ConditionSeverityWarning, reason, "%s", message)
	}
	for _, tt := range []struct {
		reason string
		older  []clusterv1.Condition
		want   metav1.Condition
	}{
		{"nothing has been applied", nil, report.None("ResourcesApplied")},
		{"all is applied", []clusterv1.Condition{condition.True("ResourcesApplied")}, report.True("ResourcesApplied", "Applied", "")},
		{"a Secret has a wrong type", []clusterv1.Condition{no("WrongSecretType", "Secret s")}, report.False("ResourcesApplied", "WrongSecretType", "Secret s")},
		{"a manifest is rejected", []clusterv1.Condition{no("ApplyFailed", "Pod p")}, report.False("ResourcesApplied", "NotApplied", "Pod p")},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			set := &addonsv1.ClusterResourceSet{}
			for _, c := range tt.older {
				condition.Set(set, c)
			}
			if diff := cmp.Diff([]metav1.Condition{tt.want}, reports(&scope{set: set})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
