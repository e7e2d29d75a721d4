package condition

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Stamp sets the transition time of every condition that has none: to the previous one if the condition is as before (it changed
// and changed back within one reconcile), otherwise to now, in UTC and whole seconds.
func Stamp(on Setter, before clusterv1.Conditions, now time.Time) {
	conditions := slices.Clone(on.GetV1Beta1Conditions())
	if len(conditions) == 0 {
		return // An empty group of what is deprecated is not written.
	}
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
	on.SetV1Beta1Conditions(conditions)
}
