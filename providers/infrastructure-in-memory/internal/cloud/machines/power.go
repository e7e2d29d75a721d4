package machines

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// unknownReason and unknownMessage are for conditions of unreachable Nodes.
	unknownReason  = "NodeStatusUnknown"
	unknownMessage = "Kubelet stopped posting node status."
)

// state is the content of a condition.
type state struct{ kind, status, reason, message string }

// healthyConditions are the conditions of a healthy Node.
func healthyConditions() []state {
	return []state{
		{"MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
		{"DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
		{"PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
		{"Ready", "True", "KubeletReady", "kubelet is posting ready status"},
	}
}

// unknownConditions returns the Unknown conditions of a Node whose kubelet has stopped reporting.
func unknownConditions() []state {
	unknown := healthyConditions()
	for i := range unknown {
		unknown[i].status, unknown[i].reason, unknown[i].message = "Unknown", unknownReason, unknownMessage
	}
	return unknown
}

// NodeConditions returns the conditions of a Node that has been healthy since a time.
func NodeConditions(since metav1.Time) []corev1.NodeCondition {
	var conditions []corev1.NodeCondition
	for _, v := range healthyConditions() {
		conditions = append(conditions, corev1.NodeCondition{
			Type: corev1.NodeConditionType(v.kind), Status: corev1.ConditionStatus(v.status), Reason: v.reason, Message: v.message,
			LastHeartbeatTime: since, LastTransitionTime: since,
		})
	}
	return conditions
}

// MarkUnreachable sets the state of a Node or Pod to that of a dead machine.
func MarkUnreachable(u *unstructured.Unstructured, now time.Time) {
	if u.GetKind() != "Node" {
		setCondition(u, state{kind: "Ready", status: "False"}, now)
		return
	}
	// Set taints first: clients that wait for the condition must find them.
	taints := withoutUnreachable(u)
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
		taints = append(taints, map[string]any{
			"key": corev1.TaintNodeUnreachable, "effect": string(effect), "timeAdded": now.UTC().Format(time.RFC3339),
		})
	}
	setTaints(u, taints)
	for _, s := range unknownConditions() {
		setCondition(u, s, now)
	}
}

// MarkReachable reverts MarkUnreachable.
func MarkReachable(u *unstructured.Unstructured, now time.Time) {
	if u.GetKind() != "Node" {
		setCondition(u, state{kind: "Ready", status: "True"}, now)
		return
	}
	setTaints(u, withoutUnreachable(u))
	for _, v := range healthyConditions() {
		setCondition(u, v, now)
	}
}

// setCondition sets a condition. It adds a missing one to a Node, but not to a Pod, which has not started yet.
func setCondition(u *unstructured.Unstructured, s state, now time.Time) {
	conditions := listOf(u, "status", "conditions")
	i := find(conditions, "type", s.kind)
	switch {
	case i < 0 && u.GetKind() != "Node":
		return
	case i < 0:
		conditions, i = append(conditions, map[string]any{"type": s.kind}), len(conditions)
	}
	condition, at := conditions[i].(map[string]any), now.UTC().Format(time.RFC3339)
	if condition["status"] == s.status {
		return
	}
	condition["status"], condition["lastTransitionTime"] = s.status, at
	if u.GetKind() == "Node" && s.status != "Unknown" {
		condition["lastHeartbeatTime"] = at
	}
	for field, value := range map[string]string{"reason": s.reason, "message": s.message} {
		delete(condition, field)
		if value != "" {
			condition[field] = value
		}
	}
	_ = unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions") // It was a list before.
}

// withoutUnreachable returns the taints of a Node without those of an unreachable one.
func withoutUnreachable(node *unstructured.Unstructured) []any {
	return slices.DeleteFunc(listOf(node, "spec", "taints"), func(t any) bool {
		taint, ok := t.(map[string]any)
		return ok && taint["key"] == corev1.TaintNodeUnreachable
	})
}

func setTaints(node *unstructured.Unstructured, taints []any) {
	if len(taints) == 0 {
		unstructured.RemoveNestedField(node.Object, "spec", "taints")
		return
	}
	_ = unstructured.SetNestedSlice(node.Object, taints, "spec", "taints") // It was a list before, or nothing.
}

// listOf returns a copy of a list of objects within an object.
func listOf(u *unstructured.Unstructured, path ...string) []any {
	list, _, _ := unstructured.NestedSlice(u.Object, path...)
	return list
}

// find returns the index of the object with this value of a field, or -1.
func find(list []any, field, value string) int {
	return slices.IndexFunc(list, func(entry any) bool {
		object, ok := entry.(map[string]any)
		return ok && object[field] == value
	})
}

// Unreachable reports whether a Node has the state of a dead machine.
func Unreachable(node *unstructured.Unstructured) bool {
	conditions := listOf(node, "status", "conditions")
	i := find(conditions, "type", "Ready")
	return i >= 0 && conditions[i].(map[string]any)["reason"] == unknownReason
}
