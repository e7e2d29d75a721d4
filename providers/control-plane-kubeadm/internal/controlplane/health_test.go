package controlplane

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

func TestSummary(t *testing.T) {
	const kind clusterv1.ConditionType = "Health"
	bad := condition.False(kind, clusterv1.ConditionSeverityError, "R", "")
	warn := condition.False(kind, clusterv1.ConditionSeverityWarning, "R", "")
	info := condition.False(kind, clusterv1.ConditionSeverityInfo, "R", "")
	good, unknown := condition.True(kind), condition.Unknown(kind, "R", "")
	cases := []struct {
		reason string
		of     []*clusterv1.Condition
		want   *clusterv1.Condition
	}{
		{"there are no conditions", []*clusterv1.Condition{nil, nil}, nil},
		{"all are healthy", []*clusterv1.Condition{&good, &good}, &good},
		{"one is healthy, the rest unknown", []*clusterv1.Condition{&unknown, &good}, &good},
		{"all are unknown", []*clusterv1.Condition{&unknown}, new(condition.Unknown(kind, "Unknown", ""))},
		{"an error takes precedence", []*clusterv1.Condition{&good, &info, &bad, &warn},
			new(condition.False(kind, clusterv1.ConditionSeverityError, "Unhealthy", "Not healthy: m2"))},
		{"a warning takes precedence over an info", []*clusterv1.Condition{&good, &info, &warn, &warn},
			new(condition.False(kind, clusterv1.ConditionSeverityWarning, "Unhealthy", "Not healthy: m2, m3"))},
		{"a long list is truncated", slices.Repeat([]*clusterv1.Condition{&bad}, 12),
			new(condition.False(kind, clusterv1.ConditionSeverityError, "Unhealthy", "Not healthy: m0, m1, m2, m3, m4, m5, m6, m7, m8, m9 and 2 more"))},
		{"an info takes precedence over healthy ones", []*clusterv1.Condition{&good, &info}, new(condition.False(kind, clusterv1.ConditionSeverityInfo, "Unhealthy", "Not healthy: m1"))},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			v := summary{condition: kind, unhealthy: "Unhealthy", unknown: "Unknown"}
			for i, c := range tc.of {
				v.add("m"+string(rune('0'+i)), c)
			}
			var want []clusterv1.Condition
			if tc.want != nil {
				want = append(want, *tc.want)
			}
			if diff := cmp.Diff(want, v.aggregate()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
