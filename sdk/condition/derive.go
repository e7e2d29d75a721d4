package condition

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Kind declares the conditions of one kind.
type Kind struct {
	// Ready are the conditions that make up Ready, most important first. Those that an object does not have are ignored. Empty:
	// the kind has no Ready.
	Ready []clusterv1.ConditionType
	// StepCounter returns whether the message of Ready is "x of n completed" while Ready is not True, and the n condition types
	// that are counted. Nil: never.
	StepCounter func(on Getter) (types []clusterv1.ConditionType, ok bool)
}

// Summarize sets Ready from the declared conditions. If the object has none of them, Ready does not change.
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
	ready := decide(clusterv1.ReadyV1Beta1Condition, present)
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

// severityOrder is the order in which conditions decide a summary: the first group with a condition wins. True precedes Unknown. False
// without severity, which conditions of other APIs may have, precedes True.
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

// decide merges conditions, most important first, into one of type t.
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

// Mirror returns the Ready condition of source as type t, or fallback if source has none.
func Mirror(t clusterv1.ConditionType, source Getter, fallback clusterv1.Condition) clusterv1.Condition {
	ready := Get(source, clusterv1.ReadyV1Beta1Condition)
	if ready == nil {
		fallback.Type = t
		return fallback
	}
	return clusterv1.Condition{Type: t, Status: ready.Status, Severity: ready.Severity, Reason: ready.Reason, Message: ready.Message}
}

// Fallback returns the fallback of Mirror: True if the source is ready, otherwise False with severity Info and this reason.
func Fallback(ready bool, reason string) clusterv1.Condition {
	if ready {
		return clusterv1.Condition{Status: corev1.ConditionTrue}
	}
	return clusterv1.Condition{Status: corev1.ConditionFalse, Severity: clusterv1.ConditionSeverityInfo, Reason: reason}
}

// Child is an object of an aggregate. Ref is "Kind/name".
type Child struct {
	Ref   string
	Ready *clusterv1.Condition
}

// Aggregate merges the Ready conditions of children into one of type t. If it is not True, the message is "x of n completed", and the
// reason names the child that decided ("Reason @ Machine/name"). The order of children must be stable. ok is false if no child has
// Ready.
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
