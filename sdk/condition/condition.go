package condition

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Getter is an object with conditions.
type Getter interface {
	GetV1Beta1Conditions() clusterv1.Conditions
}

// Setter is an object whose conditions can be set.
type Setter interface {
	Getter
	SetV1Beta1Conditions(clusterv1.Conditions)
}

// True returns a condition with status True.
func True(t clusterv1.ConditionType) clusterv1.Condition {
	return clusterv1.Condition{Type: t, Status: corev1.ConditionTrue}
}

// False returns a condition with status False. The message must be deterministic, without timestamps or random order, so that
// setting it again changes nothing. The local ports in errors of connections are removed from it.
func False(t clusterv1.ConditionType, severity clusterv1.ConditionSeverity, reason, format string, args ...any) clusterv1.Condition {
	return clusterv1.Condition{
		Type: t, Status: corev1.ConditionFalse, Severity: severity, Reason: reason, Message: sprintf(format, args),
	}
}

// Unknown returns a condition with status Unknown.
func Unknown(t clusterv1.ConditionType, reason, format string, args ...any) clusterv1.Condition {
	return clusterv1.Condition{Type: t, Status: corev1.ConditionUnknown, Reason: reason, Message: sprintf(format, args)}
}

func sprintf(format string, args []any) string {
	if len(args) == 0 {
		return written(format)
	}
	return written(withoutPorts(fmt.Sprintf(format, args...)))
}

// localAddress is the local end of a connection in the text of a net.OpError.
var localAddress = regexp.MustCompile(`\b((?:read|write) (?:tcp|udp)[46]? )[^\s>]+->`)

// withoutPorts removes the local addresses from the text of errors. Their ports differ from attempt to attempt: each failure would write
// the condition again, and the event of that write would start the next attempt.
func withoutPorts(text string) string {
	if !strings.Contains(text, "->") {
		return text
	}
	return localAddress.ReplaceAllString(text, "$1")
}

// Get returns a copy of the condition of this type, or nil if the object does not have it.
func Get(from Getter, t clusterv1.ConditionType) *clusterv1.Condition {
	for _, c := range from.GetV1Beta1Conditions() {
		if c.Type == t {
			return &c
		}
	}
	return nil
}

// IsTrue reports whether the object has the condition, with status True.
func IsTrue(from Getter, t clusterv1.ConditionType) bool { return has(from, t, corev1.ConditionTrue) }

// IsFalse reports whether the object has the condition, with status False.
func IsFalse(from Getter, t clusterv1.ConditionType) bool { return has(from, t, corev1.ConditionFalse) }

// Has reports whether the object has the condition, with any status.
func Has(from Getter, t clusterv1.ConditionType) bool { return Get(from, t) != nil }

func has(from Getter, t clusterv1.ConditionType, status corev1.ConditionStatus) bool {
	c := Get(from, t)
	return c != nil && c.Status == status
}

// Set sets a condition. If it is equal to the present one, nothing changes, including the transition time. Otherwise the
// transition time is zero until Stamp sets it. Control characters in reason and message are shown: see Clean.
func Set(on Setter, c clusterv1.Condition) {
	c.Reason, c.Message = written(c.Reason), written(c.Message)
	conditions := slices.Clone(on.GetV1Beta1Conditions())
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
	on.SetV1Beta1Conditions(conditions)
}

// Delete removes a condition.
func Delete(on Setter, t clusterv1.ConditionType) {
	if !Has(on, t) {
		return
	}
	conditions := slices.Clone(on.GetV1Beta1Conditions())
	on.SetV1Beta1Conditions(slices.DeleteFunc(conditions, func(c clusterv1.Condition) bool { return c.Type == t }))
}

// SameState reports whether two conditions are equal, apart from transition times. A change of any other field, including the
// message, is a transition.
func SameState(a, b clusterv1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Severity == b.Severity && a.Reason == b.Reason && a.Message == b.Message
}

// Sort sorts conditions: Ready first, then by type.
func Sort(conditions clusterv1.Conditions) {
	rank := func(c clusterv1.Condition) int {
		if c.Type == clusterv1.ReadyV1Beta1Condition {
			return 0
		}
		return 1
	}
	slices.SortFunc(conditions, func(a, b clusterv1.Condition) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Type, b.Type))
	})
}
