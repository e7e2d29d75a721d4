package condition_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

func TestMetav1(t *testing.T) {
	since := metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	at := func(c clusterv1.Condition) clusterv1.Condition {
		c.LastTransitionTime = since
		return c
	}
	tests := []struct {
		reason string
		in     clusterv1.Conditions
		want   []metav1.Condition
	}{
		{reason: "an object without conditions has none"},
		{
			reason: "all fields but the severity are kept",
			in:     clusterv1.Conditions{at(condition.False("Ready", clusterv1.ConditionSeverityWarning, "Waiting", "for b"))},
			want: []metav1.Condition{
				{Type: "Ready", Status: "False", ObservedGeneration: 7, LastTransitionTime: since, Reason: "Waiting", Message: "for b"},
			},
		},
		{
			reason: "metav1 requires a reason, and True has none in v1beta1",
			in:     clusterv1.Conditions{at(condition.True("Ready")), at(condition.True("example.com/Powered"))},
			want: []metav1.Condition{
				{Type: "Ready", Status: "True", ObservedGeneration: 7, LastTransitionTime: since, Reason: "Ready"},
				{Type: "example.com/Powered", Status: "True", ObservedGeneration: 7, LastTransitionTime: since, Reason: "NoReasonReported"},
			},
		},
		{
			reason: "the API server would reject the whole status for what is too long or invalid",
			in:     clusterv1.Conditions{at(condition.Unknown("Ready", "not a reason", "%s", strings.Repeat("x", 40000)))},
			want: []metav1.Condition{{
				Type: "Ready", Status: "Unknown", ObservedGeneration: 7, LastTransitionTime: since, Reason: "Ready",
				Message: strings.Repeat("x", 32765) + "...",
			}},
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, condition.Metav1(tc.in, 7)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
