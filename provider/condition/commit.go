package condition

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// Merge carries what changed between before and after over to live, for a status write that met a newer
// object: a condition that this reconcile set or removed wins, everything else stays as live says.
func Merge(before, after, live clusterv1.Conditions) clusterv1.Conditions {
	merged := slices.Clone(live)
	for _, c := range after {
		if old := find(before, c.Type); old != nil && SameState(*old, c) {
			continue
		}
		merged = put(merged, c)
	}
	merged = slices.DeleteFunc(merged, func(c clusterv1.Condition) bool {
		return find(before, c.Type) != nil && find(after, c.Type) == nil
	})
	Sort(merged)
	return merged
}

// Same reports whether two lists state the same in the same order, whenever they came to do so.
func Same(a, b clusterv1.Conditions) bool { return slices.EqualFunc(a, b, SameState) }

func find(in clusterv1.Conditions, t clusterv1.ConditionType) *clusterv1.Condition {
	for i := range in {
		if in[i].Type == t {
			return &in[i]
		}
	}
	return nil
}

func put(in clusterv1.Conditions, c clusterv1.Condition) clusterv1.Conditions {
	old := find(in, c.Type)
	if old == nil {
		return append(in, c)
	}
	if !SameState(*old, c) {
		*old = c
	}
	return in
}

// Changed are the types of the conditions that do not say the same in both, in the order of after.
func Changed(before, after clusterv1.Conditions) []clusterv1.ConditionType {
	var changed []clusterv1.ConditionType
	for _, c := range after {
		if old := find(before, c.Type); old == nil || !SameState(*old, c) {
			changed = append(changed, c.Type)
		}
	}
	for _, c := range before {
		if find(after, c.Type) == nil {
			changed = append(changed, c.Type)
		}
	}
	return changed
}

// OnItsWay reports whether condition t, which changed from before to after, only says that something is still missing
// that was missing before. If arrived is set, it may also have become True.
func OnItsWay(before, after clusterv1.Conditions, t clusterv1.ConditionType, arrived bool) bool {
	old, now := find(before, t), find(after, t)
	switch {
	case now == nil || now.Severity == clusterv1.ConditionSeverityError:
		return false
	case old != nil && (old.Status == corev1.ConditionTrue || old.Severity == clusterv1.ConditionSeverityError):
		return false
	}
	return arrived || now.Status != corev1.ConditionTrue
}

// Restated reports whether a condition keeps its status, and neither begins nor ceases to be of severity Error: what
// changed is its reason, its message, or how it ranks among others that are not True.
func Restated(before, after clusterv1.Condition) bool {
	return before.Status == after.Status &&
		before.Severity != clusterv1.ConditionSeverityError && after.Severity != clusterv1.ConditionSeverityError
}
