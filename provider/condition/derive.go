package condition

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Kind declares the conditions of one kind: it is data, next to the controller that owns the kind.
type Kind struct {
	// Ready lists the conditions that feed Ready, most important first. Conditions of the list that an
	// object does not have are left out. Empty: the kind has no Ready.
	Ready []clusterv1.ConditionType
	// StepCounter, if set, decides for an object whether the message of Ready is replaced by
	// "x of n completed" while it is being brought up, and over which types that counts.
	StepCounter func(on Getter) (types []clusterv1.ConditionType, ok bool)
}

// Summarize computes Ready from the declared conditions and sets it. With none of them present Ready is
// left as it is.
func (k Kind) Summarize(on Setter) {
	if ready, ok := k.summary(on); ok {
		Set(on, ready)
	}
}

func (k Kind) summary(on Getter) (clusterv1.Condition, bool) {
	var present []clusterv1.Condition
	for _, t := range k.Ready {
		if c := Get(on, t); c != nil {
			present = append(present, *c)
		}
	}
	if len(present) == 0 {
		return clusterv1.Condition{}, false
	}
	ready := decide(clusterv1.ReadyCondition, present)
	if ready.Status == corev1.ConditionTrue || k.StepCounter == nil {
		return ready, true
	}
	if types, ok := k.StepCounter(on); ok {
		done := 0
		for _, t := range types {
			if IsTrue(on, t) {
				done++
			}
		}
		ready.Message = fmt.Sprintf("%d of %d completed", done, len(types))
	}
	return ready, true
}

// severityOrder is the order in which groups of conditions decide a summary: the first group that has a
// member wins. True beats Unknown. A False that was given no severity, as conditions of other APIs may be, still
// beats True.
var severityOrder = []struct { // A constant table.
	status   corev1.ConditionStatus
	severity clusterv1.ConditionSeverity
}{
	{corev1.ConditionFalse, clusterv1.ConditionSeverityError},
	{corev1.ConditionFalse, clusterv1.ConditionSeverityWarning},
	{corev1.ConditionFalse, clusterv1.ConditionSeverityInfo},
	{corev1.ConditionFalse, clusterv1.ConditionSeverityNone},
	{corev1.ConditionTrue, clusterv1.ConditionSeverityNone},
	{corev1.ConditionUnknown, clusterv1.ConditionSeverityNone},
}

// decide merges conditions, in order of importance, into one of type t.
func decide(t clusterv1.ConditionType, from []clusterv1.Condition) clusterv1.Condition {
	for _, group := range severityOrder {
		for _, c := range from {
			if c.Status == group.status && (c.Status != corev1.ConditionFalse || c.Severity == group.severity) {
				return clusterv1.Condition{Type: t, Status: c.Status, Severity: c.Severity, Reason: c.Reason, Message: c.Message}
			}
		}
	}
	return clusterv1.Condition{Type: t, Status: corev1.ConditionUnknown}
}

// Mirror is the Ready condition of source under another type; fallback when source has none.
func Mirror(t clusterv1.ConditionType, source Getter, fallback clusterv1.Condition) clusterv1.Condition {
	ready := Get(source, clusterv1.ReadyCondition)
	if ready == nil {
		fallback.Type = t
		return fallback
	}
	return clusterv1.Condition{Type: t, Status: ready.Status, Severity: ready.Severity, Reason: ready.Reason, Message: ready.Message}
}

// Fallback is what a mirror says of a source without Ready: True when the source is ready otherwise, else
// False with severity Info and this reason.
func Fallback(ready bool, reason string) clusterv1.Condition {
	if ready {
		return clusterv1.Condition{Status: corev1.ConditionTrue}
	}
	return clusterv1.Condition{Status: corev1.ConditionFalse, Severity: clusterv1.ConditionSeverityInfo, Reason: reason}
}

// Child is one object of an aggregate; Ref is "Kind/name".
type Child struct {
	Ref   string
	Ready *clusterv1.Condition
}

// Aggregate merges the Ready conditions of children into one of type t, with message "x of n completed"
// and the deciding child appended to the reason ("Reason @ Machine/name"). Give the children in a stable
// order. ok is false when no child has Ready.
func Aggregate(t clusterv1.ConditionType, children []Child) (result clusterv1.Condition, ok bool) {
	done := 0
	var present []clusterv1.Condition
	for _, child := range children {
		if child.Ready == nil {
			continue
		}
		c := *child.Ready
		if c.Status == corev1.ConditionTrue {
			done++
		} else if c.Reason != "" && !strings.Contains(c.Reason, " @ ") {
			c.Reason += " @ " + child.Ref
		}
		present = append(present, c)
	}
	if len(present) == 0 {
		return clusterv1.Condition{}, false
	}
	result = decide(t, present)
	if result.Status != corev1.ConditionTrue {
		result.Message = fmt.Sprintf("%d of %d completed", done, len(children))
	}
	return result, true
}
