package step

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

const (
	ready = clusterv1.ReadyV1Beta1Condition
	drain = clusterv1.DrainingSucceededV1Beta1Condition
	info  = clusterv1.ConditionSeverityInfo
)

var past = metav1.NewTime(time.Date(2024, 4, 16, 9, 0, 0, 0, time.UTC))

// since returns c with a transition time.
func since(t metav1.Time, c clusterv1.Condition) clusterv1.Condition {
	c.LastTransitionTime = t
	return c
}

func TestMergeConditions(t *testing.T) {
	later := metav1.NewTime(past.Add(time.Minute))
	waiting := since(past, condition.False(infra, info, "Waiting", ""))
	for name, c := range map[string]struct {
		reason              string
		before, after, live clusterv1.Conditions
		want                clusterv1.Conditions
	}{
		"OthersWrote": {
			reason: "conditions that this reconcile did not change are kept as others wrote them meanwhile",
			before: clusterv1.Conditions{waiting},
			after:  clusterv1.Conditions{waiting},
			live:   clusterv1.Conditions{since(later, condition.True(drain)), since(later, condition.True(infra))},
			want:   clusterv1.Conditions{since(later, condition.True(drain)), since(later, condition.True(infra))},
		},
		"OthersRemoved": {
			reason: "conditions that others removed, and this reconcile did not change, are not restored",
			before: clusterv1.Conditions{waiting},
			after:  clusterv1.Conditions{waiting},
			live:   clusterv1.Conditions{},
			want:   clusterv1.Conditions{},
		},
		"WeSet": {
			reason: "conditions that this reconcile set win, in their place in the order",
			before: clusterv1.Conditions{waiting},
			after:  clusterv1.Conditions{since(later, condition.True(ready)), since(later, condition.True(infra))},
			live:   clusterv1.Conditions{since(later, condition.True(boot)), waiting},
			want: clusterv1.Conditions{
				since(later, condition.True(ready)), since(later, condition.True(boot)), since(later, condition.True(infra)),
			},
		},
		"BothSetTheSame": {
			reason: "if others set the same condition first, their transition time is kept",
			before: clusterv1.Conditions{waiting},
			after:  clusterv1.Conditions{since(later, condition.True(infra))},
			live:   clusterv1.Conditions{since(past, condition.True(infra))},
			want:   clusterv1.Conditions{since(past, condition.True(infra))},
		},
		"WeRemoved": {
			reason: "conditions that this reconcile removed are removed, even if others changed them meanwhile",
			before: clusterv1.Conditions{since(past, condition.True(boot)), waiting},
			after:  clusterv1.Conditions{since(past, condition.True(boot))},
			live:   clusterv1.Conditions{since(past, condition.True(boot)), since(later, condition.True(infra))},
			want:   clusterv1.Conditions{since(past, condition.True(boot))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := append(clusterv1.Conditions(nil), c.live...)
			if diff := cmp.Diff(c.want, mergeConditions(c.before, c.after, c.live)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(live, append(clusterv1.Conditions(nil), c.live...)); diff != "" {
				t.Errorf("the live object must not change: -want +got:\n%s", diff)
			}
		})
	}
}
