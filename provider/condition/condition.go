package condition

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Getter is anything that has conditions.
type Getter interface {
	GetConditions() clusterv1.Conditions
}

// Setter is anything whose conditions can be replaced.
type Setter interface {
	Getter
	SetConditions(clusterv1.Conditions)
}

// True is a condition of this type with status True.
func True(t clusterv1.ConditionType) clusterv1.Condition {
	return clusterv1.Condition{Type: t, Status: corev1.ConditionTrue}
}

// False is a condition of this type with status False. The message must be deterministic: no timestamps,
// no random order, so that stating it again changes nothing.
func False(t clusterv1.ConditionType, severity clusterv1.ConditionSeverity, reason, format string, args ...any) clusterv1.Condition {
	return clusterv1.Condition{
		Type: t, Status: corev1.ConditionFalse, Severity: severity, Reason: reason, Message: sprintf(format, args),
	}
}

// Unknown is a condition of this type with status Unknown.
func Unknown(t clusterv1.ConditionType, reason, format string, args ...any) clusterv1.Condition {
	return clusterv1.Condition{Type: t, Status: corev1.ConditionUnknown, Reason: reason, Message: sprintf(format, args)}
}

func sprintf(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}

// Get returns a copy of the condition of this type, or nil if the object does not have it.
func Get(from Getter, t clusterv1.ConditionType) *clusterv1.Condition {
	for _, c := range from.GetConditions() {
		if c.Type == t {
			return &c
		}
	}
	return nil
}

// IsTrue reports whether the condition is there and True.
func IsTrue(from Getter, t clusterv1.ConditionType) bool { return has(from, t, corev1.ConditionTrue) }

// IsFalse reports whether the condition is there and False.
func IsFalse(from Getter, t clusterv1.ConditionType) bool { return has(from, t, corev1.ConditionFalse) }

// Has reports whether the object has a condition of this type, whatever its status.
func Has(from Getter, t clusterv1.ConditionType) bool { return Get(from, t) != nil }

func has(from Getter, t clusterv1.ConditionType, status corev1.ConditionStatus) bool {
	c := Get(from, t)
	return c != nil && c.Status == status
}

// Set states a condition. When the object already says the same, nothing changes, its transition time
// included. Otherwise the transition time is left zero, which means "now": Stamp fills it in at commit.
func Set(on Setter, c clusterv1.Condition) {
	conditions := slices.Clone(on.GetConditions())
	i := slices.IndexFunc(conditions, func(x clusterv1.Condition) bool { return x.Type == c.Type })
	switch {
	case i < 0:
		conditions = append(conditions, c)
	case SameState(conditions[i], c):
		return
	default:
		conditions[i] = c
	}
	Sort(conditions)
	on.SetConditions(conditions)
}

// Delete removes the condition of this type, if it is there.
func Delete(on Setter, t clusterv1.ConditionType) {
	if !Has(on, t) {
		return
	}
	on.SetConditions(slices.DeleteFunc(slices.Clone(on.GetConditions()), func(c clusterv1.Condition) bool { return c.Type == t }))
}

// SameState reports whether two conditions say the same, transition times aside. A change of any other
// field, the message included, is a transition.
func SameState(a, b clusterv1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Severity == b.Severity && a.Reason == b.Reason && a.Message == b.Message
}

// Sort orders conditions as they are shown: Ready first, then by type.
func Sort(conditions clusterv1.Conditions) {
	rank := func(c clusterv1.Condition) int {
		if c.Type == clusterv1.ReadyCondition {
			return 0
		}
		return 1
	}
	slices.SortFunc(conditions, func(a, b clusterv1.Condition) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Type, b.Type))
	})
}
