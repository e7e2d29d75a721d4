package journey

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Journeys read objects in v1beta1, as clients of that version do. This file has what package condition of the SDK has for v1beta2.

// Conditioned is an object with conditions.
type Conditioned interface {
	GetConditions() clusterv1beta1.Conditions
}

// conditionSetter is an object whose conditions can be set.
type conditionSetter interface {
	Conditioned
	SetConditions(clusterv1beta1.Conditions)
}

// FindCondition returns a copy of the condition of this type; nil if the object does not have it.
func FindCondition(from Conditioned, t clusterv1beta1.ConditionType) *clusterv1beta1.Condition {
	for _, c := range from.GetConditions() {
		if c.Type == t {
			return &c
		}
	}
	return nil
}

// HasCondition reports whether the object has the condition.
func HasCondition(from Conditioned, t clusterv1beta1.ConditionType) bool {
	return FindCondition(from, t) != nil
}

// ConditionIsTrue reports whether the object has the condition, with status True.
func ConditionIsTrue(from Conditioned, t clusterv1beta1.ConditionType) bool {
	c := FindCondition(from, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// TrueCondition returns a condition with status True.
func TrueCondition(t clusterv1beta1.ConditionType) clusterv1beta1.Condition {
	return clusterv1beta1.Condition{Type: t, Status: corev1.ConditionTrue}
}

// FalseCondition returns a condition with status False.
func FalseCondition(
	t clusterv1beta1.ConditionType, severity clusterv1beta1.ConditionSeverity, reason, message string,
) clusterv1beta1.Condition {
	return clusterv1beta1.Condition{Type: t, Status: corev1.ConditionFalse, Severity: severity, Reason: reason, Message: message}
}

// SetCondition adds or replaces a condition.
func SetCondition(on conditionSetter, c clusterv1beta1.Condition) {
	conditions := slices.DeleteFunc(slices.Clone(on.GetConditions()), func(old clusterv1beta1.Condition) bool { return old.Type == c.Type })
	on.SetConditions(append(conditions, c))
}
