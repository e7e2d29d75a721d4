// Package condition reads and sets the conditions of objects that tests read in v1beta1, as clients of that version do.
package condition

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Getter is an object with conditions.
type Getter interface {
	GetConditions() clusterv1beta1.Conditions
}

// Setter is an object whose conditions can be set.
type Setter interface {
	Getter
	SetConditions(clusterv1beta1.Conditions)
}

// Get returns a copy of the condition of this type; nil if the object does not have it.
func Get(from Getter, t clusterv1beta1.ConditionType) *clusterv1beta1.Condition {
	for _, c := range from.GetConditions() {
		if c.Type == t {
			return &c
		}
	}
	return nil
}

// Has reports whether the object has the condition.
func Has(from Getter, t clusterv1beta1.ConditionType) bool { return Get(from, t) != nil }

// IsTrue reports whether the object has the condition, with status True.
func IsTrue(from Getter, t clusterv1beta1.ConditionType) bool {
	c := Get(from, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// True returns a condition with status True.
func True(t clusterv1beta1.ConditionType) clusterv1beta1.Condition {
	return clusterv1beta1.Condition{Type: t, Status: corev1.ConditionTrue}
}

// False returns a condition with status False.
func False(
	t clusterv1beta1.ConditionType, severity clusterv1beta1.ConditionSeverity, reason, message string,
) clusterv1beta1.Condition {
	return clusterv1beta1.Condition{Type: t, Status: corev1.ConditionFalse, Severity: severity, Reason: reason, Message: message}
}

// Set adds or replaces a condition.
func Set(on Setter, c clusterv1beta1.Condition) {
	conditions := slices.DeleteFunc(slices.Clone(on.GetConditions()), func(old clusterv1beta1.Condition) bool { return old.Type == c.Type })
	on.SetConditions(append(conditions, c))
}
