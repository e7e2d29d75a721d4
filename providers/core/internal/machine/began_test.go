package machine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// TestBegan checks from when the timeouts of a deletion count.
func TestBegan(t *testing.T) {
	const drain = clusterv1.DrainingSucceededV1Beta1Condition
	at := func(minute int) metav1.Time { return metav1.NewTime(now.Add(time.Duration(minute) * time.Minute)) }
	reports := func(minute int) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			c := condition.False(drain, clusterv1.ConditionSeverityInfo, "Draining", "")
			c.LastTransitionTime = at(minute)
			condition.Set(m, c)
		}
	}
	records := func(minute int) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { record(m, drain, at(minute)) }
	}
	for name, tc := range map[string]struct {
		reason  string
		changes []func(*clusterv1.Machine)
		want    time.Time
	}{
		"Not":      {reason: "it did not begin"},
		"Both":     {"status.deletion counts", []func(*clusterv1.Machine){reports(5), records(1)}, at(1).Time},
		"Older":    {"the definition does not have the field", []func(*clusterv1.Machine){reports(5)}, at(5).Time},
		"Recorded": {"the condition is lost", []func(*clusterv1.Machine){records(1)}, at(1).Time},
		"Again":    {"what is recorded stays", []func(*clusterv1.Machine){records(1), records(3)}, at(1).Time},
		"Other": {"each step has a time of its own", []func(*clusterv1.Machine){func(m *clusterv1.Machine) {
			record(m, clusterv1.VolumeDetachSucceededV1Beta1Condition, at(1))
		}}, time.Time{}},
	} {
		m := build.Machine("m")
		for _, change := range tc.changes {
			change(m)
		}
		if got, begun := began(m, drain); !got.Equal(tc.want) || begun == tc.want.IsZero() {
			t.Errorf("%s: %s: got %s, %t", name, tc.reason, got, begun)
		}
	}
}
