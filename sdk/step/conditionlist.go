package step

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// mergeConditions applies the changes between before and after to live, the conditions of a newer version of the object. A condition
// that was set or removed wins; all others stay as they are in live.
func mergeConditions(before, after, live clusterv1.Conditions) clusterv1.Conditions {
	merged := slices.Clone(live)
	for _, c := range after {
		if old := findCondition(before, c.Type); old != nil && condition.SameState(*old, c) {
			continue
		}
		merged = putCondition(merged, c)
	}
	merged = slices.DeleteFunc(merged, func(c clusterv1.Condition) bool {
		return findCondition(before, c.Type) != nil && findCondition(after, c.Type) == nil
	})
	condition.Sort(merged)
	return merged
}

// sameConditions reports whether two lists are equal, apart from transition times.
func sameConditions(a, b clusterv1.Conditions) bool {
	return slices.EqualFunc(a, b, condition.SameState)
}

func findCondition(in clusterv1.Conditions, t clusterv1.ConditionType) *clusterv1.Condition {
	for i := range in {
		if in[i].Type == t {
			return &in[i]
		}
	}
	return nil
}

func putCondition(in clusterv1.Conditions, c clusterv1.Condition) clusterv1.Conditions {
	old := findCondition(in, c.Type)
	if old == nil {
		return append(in, c)
	}
	if !condition.SameState(*old, c) {
		*old = c
	}
	return in
}

// changedConditions returns the types of the conditions that differ, in the order of after, removed ones last.
func changedConditions(before, after clusterv1.Conditions) []clusterv1.ConditionType {
	var changed []clusterv1.ConditionType
	for _, c := range after {
		if old := findCondition(before, c.Type); old == nil || !condition.SameState(*old, c) {
			changed = append(changed, c.Type)
		}
	}
	for _, c := range before {
		if findCondition(after, c.Type) == nil {
			changed = append(changed, c.Type)
		}
	}
	return changed
}

// stillWaiting reports whether condition t was not True before and still is not, without severity Error. If mayBeTrue is
// set, it may have become True.
func stillWaiting(before, after clusterv1.Conditions, t clusterv1.ConditionType, mayBeTrue bool) bool {
	old, now := findCondition(before, t), findCondition(after, t)
	switch {
	case now == nil || now.Severity == clusterv1.ConditionSeverityError:
		return false
	case old != nil && (old.Status == corev1.ConditionTrue || old.Severity == clusterv1.ConditionSeverityError):
		return false
	}
	return mayBeTrue || now.Status != corev1.ConditionTrue
}

// sameStatus reports whether a condition keeps its status, and has severity Error neither before nor after: only its
// reason, message or a lower severity changed.
func sameStatus(before, after clusterv1.Condition) bool {
	return before.Status == after.Status &&
		before.Severity != clusterv1.ConditionSeverityError && after.Severity != clusterv1.ConditionSeverityError
}
