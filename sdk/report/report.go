package report

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// Getter is an object with metav1 conditions.
type Getter interface {
	GetConditions() []metav1.Condition
}

// Setter is an object whose metav1 conditions can be set.
type Setter interface {
	Getter
	SetConditions([]metav1.Condition)
}

// maxMessage is how long a message can be, in the definitions of all kinds.
const maxMessage = 32768

// True returns a condition with status True. The message must be deterministic, without timestamps of now or random order.
func True(t, reason, format string, args ...any) metav1.Condition {
	return of(t, metav1.ConditionTrue, reason, format, args)
}

// False returns a condition with status False; see True.
func False(t, reason, format string, args ...any) metav1.Condition {
	return of(t, metav1.ConditionFalse, reason, format, args)
}

// Unknown returns a condition with status Unknown; see True.
func Unknown(t, reason, format string, args ...any) metav1.Condition {
	return of(t, metav1.ConditionUnknown, reason, format, args)
}

// If returns a condition without a message: True with reason yes if it holds, otherwise False with reason no.
func If(t string, holds bool, yes, no string) metav1.Condition {
	if holds {
		return True(t, yes, "")
	}
	return False(t, no, "")
}

// None returns a condition that removes the one of its type.
func None(t string) metav1.Condition { return metav1.Condition{Type: t} }

func of(t string, status metav1.ConditionStatus, reason, format string, args []any) metav1.Condition {
	// The text is cleaned as in conditions of the other kind: no control characters, no local ports.
	text := condition.Unknown("", reason, format, args...)
	return metav1.Condition{Type: t, Status: status, Reason: reason, Message: condition.Truncate(text.Message, maxMessage)}
}

// Get returns a copy of the condition of a type; nil if the object does not have it.
func Get(from Getter, t string) *metav1.Condition { return Find(from.GetConditions(), t) }

// Find returns a copy of the condition of a type in a list; nil if it is absent.
func Find(in []metav1.Condition, t string) *metav1.Condition {
	for i := range in {
		if in[i].Type == t {
			found := in[i]
			return &found
		}
	}
	return nil
}

// IsTrue reports whether an object has the condition, with status True.
func IsTrue(from Getter, t string) bool {
	c := Get(from, t)
	return c != nil && c.Status == metav1.ConditionTrue
}

// IsFalse reports whether an object has the condition, with status False.
func IsFalse(from Getter, t string) bool {
	c := Get(from, t)
	return c != nil && c.Status == metav1.ConditionFalse
}

// Set sets conditions that were computed for a generation of the object, and removes those of None. The transition time of a condition
// changes with its status. If nothing differs, the object does not change.
func Set(on Setter, generation int64, now time.Time, conditions ...metav1.Condition) {
	before := on.GetConditions()
	after := slices.Clone(before)
	for _, c := range conditions {
		i := slices.IndexFunc(after, func(x metav1.Condition) bool { return x.Type == c.Type })
		switch {
		case c.Status == "" && i >= 0:
			after = slices.Delete(after, i, i+1)
			continue
		case c.Status == "":
			continue
		}
		c.ObservedGeneration = generation
		c.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		if i < 0 {
			after = append(after, c)
			continue
		}
		if after[i].Status == c.Status {
			c.LastTransitionTime = after[i].LastTransitionTime
		}
		after[i] = c
	}
	Sort(after)
	if !slices.Equal(before, after) {
		on.SetConditions(after)
	}
}

// Same reports whether two conditions are equal, apart from transition times.
func Same(a, b metav1.Condition) bool {
	b.LastTransitionTime = a.LastTransitionTime
	return a == b
}

// Merge applies the changes between before and after to live, the conditions of a newer version of the object. A condition that was set
// or removed wins; all others stay as they are in live.
func Merge(before, after, live []metav1.Condition) []metav1.Condition {
	merged := slices.Clone(live)
	for _, c := range after {
		if old := Find(before, c.Type); old != nil && Same(*old, c) {
			continue
		}
		i := slices.IndexFunc(merged, func(x metav1.Condition) bool { return x.Type == c.Type })
		if i < 0 {
			merged = append(merged, c)
		} else if !Same(merged[i], c) {
			merged[i] = c
		}
	}
	merged = slices.DeleteFunc(merged, func(c metav1.Condition) bool {
		return Find(before, c.Type) != nil && Find(after, c.Type) == nil
	})
	Sort(merged)
	return merged
}

// Missing is the condition that stands for one that an object does not have.
func Missing(t string) metav1.Condition {
	return Unknown(t, clusterv1.NotYetReportedReason, "%s", fmt.Sprintf("Condition %s not yet reported", t))
}
