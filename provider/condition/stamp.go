package condition

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Stamp gives every condition without a transition time one: the time it had before, if it says the same
// as then (it went away and came back within one reconcile), otherwise now. Seconds, UTC.
func Stamp(on Setter, before clusterv1.Conditions, now time.Time) {
	conditions := slices.Clone(on.GetConditions())
	for i, c := range conditions {
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		conditions[i].LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		for _, old := range before {
			if SameState(old, c) {
				conditions[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	on.SetConditions(conditions)
}
