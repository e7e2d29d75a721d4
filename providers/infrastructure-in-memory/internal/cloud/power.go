package cloud

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
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

// powerOff sets the state of a dead machine's Node and Pods as a real cluster does once the kubelet has stopped reporting
// for long enough. The group's lock is held.
func (g *Group) powerOff(machine string) error {
	if err := g.modify(g.lookup(Key{Resource: nodes, Name: machine}), g.markUnreachable); err != nil {
		return err
	}
	for _, pod := range g.podsOf(machine) {
		if err := g.modify(pod, g.markUnreachable); err != nil {
			return err
		}
	}
	return nil
}

// markUnreachable sets the state of a Node or Pod to that of a dead machine.
func (g *Group) markUnreachable(u *unstructured.Unstructured) {
	if u.GetKind() != "Node" {
		g.setCondition(u, state{kind: "Ready", status: "False"})
		return
	}
	// Set taints first: clients that wait for the condition must find them.
	taints := withoutUnreachable(u)
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
		taints = append(taints, map[string]any{
			"key": corev1.TaintNodeUnreachable, "effect": string(effect), "timeAdded": g.clock.Now().UTC().Format(time.RFC3339),
		})
	}
	setTaints(u, taints)
	for _, s := range unknownConditions() {
		g.setCondition(u, s)
	}
}

// powerOn restores a machine: its terminating Pods are removed, the others are ready again.
func (g *Group) powerOn(machine string) error {
	if err := g.modify(g.lookup(Key{Resource: nodes, Name: machine}), g.markReachable); err != nil {
		return err
	}
	for _, pod := range g.podsOf(machine) {
		if pod.terminating && len(pod.Unstructured().GetFinalizers()) == 0 {
			if err := g.remove(pod); err != nil {
				return err
			}
			continue
		}
		if err := g.modify(pod, g.markReachable); err != nil {
			return err
		}
	}
	return nil
}

// markReachable reverts markUnreachable.
func (g *Group) markReachable(u *unstructured.Unstructured) {
	if u.GetKind() != "Node" {
		g.setCondition(u, state{kind: "Ready", status: "True"})
		return
	}
	setTaints(u, withoutUnreachable(u))
	for _, v := range healthyConditions() {
		g.setCondition(u, v)
	}
}

// markIfDead applies markUnreachable to an object that is created on a dead machine. A process that has just started
// restores objects before or after it learns about the faults. The group's lock is held.
func (g *Group) markIfDead(r Resource, u *unstructured.Unstructured) {
	if r == nodes && g.Dead(u.GetName()) || r == pods && g.onDeadMachine(u) {
		g.markUnreachable(u)
	}
}

// unreachableNodes returns the sorted names of the Nodes that powerOff changed. The group's lock is held.
func (g *Group) unreachableNodes() []string {
	var names []string
	for _, o := range g.objects[nodes] {
		conditions := listOf(o.Unstructured(), "status", "conditions")
		if i := find(conditions, "type", "Ready"); i >= 0 && conditions[i].(map[string]any)["reason"] == unknownReason {
			names = append(names, o.Key.Name)
		}
	}
	slices.Sort(names)
	return names
}

// modify updates an object with change, if it exists and differs. The group's lock is held.
func (g *Group) modify(o *Object, change func(*unstructured.Unstructured)) error {
	if o == nil {
		return nil
	}
	u := o.Unstructured()
	change(u)
	if unchanged(o, u) {
		return nil
	}
	updated, err := encode(o.Key, u, g.revision+1)
	if err != nil {
		return err
	}
	return g.put(Event{Type: watch.Modified, Object: updated, Previous: o})
}

// setCondition sets a condition. It adds a missing one to a Node, but not to a Pod, which has not started yet.
func (g *Group) setCondition(u *unstructured.Unstructured, s state) {
	conditions := listOf(u, "status", "conditions")
	i := find(conditions, "type", s.kind)
	switch {
	case i < 0 && u.GetKind() != "Node":
		return
	case i < 0:
		conditions, i = append(conditions, map[string]any{"type": s.kind}), len(conditions)
	}
	condition, now := conditions[i].(map[string]any), g.clock.Now().UTC().Format(time.RFC3339)
	if condition["status"] == s.status {
		return
	}
	condition["status"], condition["lastTransitionTime"] = s.status, now
	if u.GetKind() == "Node" && s.status != "Unknown" {
		condition["lastHeartbeatTime"] = now
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

// podsOf returns the Pods bound to a Node, sorted. The group's lock is held.
func (g *Group) podsOf(node string) []*Object {
	var bound []*Object
	for _, o := range g.objects[pods] {
		if nodeName(o.Unstructured()) == node {
			bound = append(bound, o)
		}
	}
	slices.SortFunc(bound, func(a, b *Object) int { return compareKeys(a.Key, b.Key) })
	return bound
}

// removePodsOf removes the Pods of a deleted Node, like the Pod garbage collector.
func (g *Group) removePodsOf(node string) error {
	for _, pod := range g.podsOf(node) {
		if g.lookup(pod.Key) != pod || len(pod.Unstructured().GetFinalizers()) > 0 {
			continue
		}
		if err := g.remove(pod); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) onDeadMachine(pod *unstructured.Unstructured) bool {
	node := nodeName(pod)
	return node != "" && g.Dead(node)
}

func nodeName(pod *unstructured.Unstructured) string {
	node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	return node
}

// staysTerminating reports whether a Pod on a dead machine stays terminating.
func (g *Group) staysTerminating(current *Object, pod *unstructured.Unstructured, o DeleteOptions) bool {
	return current.Key.Resource == pods && gracePeriod(pod, o) > 0 && g.onDeadMachine(pod)
}
