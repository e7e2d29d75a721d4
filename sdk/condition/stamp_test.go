package condition_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

func TestStamp(t *testing.T) {
	// now is in another zone, and has a fraction of a second.
	now := time.Date(2024, 4, 16, 12, 0, 0, 7e8, time.FixedZone("east", 2*60*60))
	stamped := metav1.NewTime(time.Date(2024, 4, 16, 10, 0, 0, 0, time.UTC))
	for name, c := range map[string]struct {
		reason     string
		on, before clusterv1.Conditions
		want       clusterv1.Conditions
	}{
		"New": {
			reason: "a new condition gets the current time, in UTC and whole seconds like in the API",
			on:     clusterv1.Conditions{condition.True(infra)},
			want:   clusterv1.Conditions{since(stamped, condition.True(infra))},
		},
		"Kept": {
			reason: "a condition that has a time keeps it",
			on:     clusterv1.Conditions{since(past, condition.True(infra))},
			before: clusterv1.Conditions{since(past, condition.True(infra))},
			want:   clusterv1.Conditions{since(past, condition.True(infra))},
		},
		"Changed": {
			reason: "a changed condition gets the current time",
			on:     clusterv1.Conditions{condition.True(infra)},
			before: clusterv1.Conditions{since(past, condition.False(infra, info, "Waiting", ""))},
			want:   clusterv1.Conditions{since(stamped, condition.True(infra))},
		},
		"ThereAndBack": {
			reason: "a condition that changed and changed back within one reconcile keeps its time",
			on:     clusterv1.Conditions{condition.True(infra)},
			before: clusterv1.Conditions{since(past, condition.True(boot)), since(past, condition.True(infra))},
			want:   clusterv1.Conditions{since(past, condition.True(infra))},
		},
		"Others": {
			reason: "conditions of other types do not matter",
			on:     clusterv1.Conditions{condition.True(infra)},
			before: clusterv1.Conditions{since(past, condition.True(boot))},
			want:   clusterv1.Conditions{since(stamped, condition.True(infra))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			on := machine(c.on...)
			condition.Stamp(on, c.before, now)
			if diff := cmp.Diff(c.want, on.GetV1Beta1Conditions()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
			if got := on.GetV1Beta1Conditions()[0].LastTransitionTime; got.Location() != time.UTC {
				t.Errorf("the transition time is in zone %s, want UTC", got.Location())
			}
		})
	}
}
