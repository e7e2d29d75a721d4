package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// Condition is one condition of an object, as it is shown.
type Condition struct {
	Type, Status, Severity, Reason, Message string
	// Since is zero if it is unknown.
	Since time.Time
}

// sameState reports whether two Ready conditions, which may be nil, differ at most in their message and time.
func sameState(a, b *Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Severity == b.Severity && a.Reason == b.Reason
}

// Node is one row of a tree with the rows below it.
type Node struct {
	// Kind is empty for a node that only groups others.
	Kind, Name string
	// APIVersion and Namespace are empty for a node without object.
	APIVersion, Namespace string
	// MetaName is the role of the object for its parent, such as ControlPlane; may be empty.
	MetaName string
	// Group holds the names of the objects that the node stands for; empty for a node that stands for one or none.
	Group []string
	// Ready is nil if the object has no such condition.
	Ready *Condition
	// Conditions are the other conditions to show, sorted by type.
	Conditions []Condition
	// Deleting is set if the object is being deleted; Deleted is when that was requested, of a group the first time.
	Deleting bool
	Deleted  time.Time
	// Replicas is nil for kinds without replicas; Version and NodeName are empty, and Created is zero, if unknown.
	Replicas          *DocumentReplicas
	Version, NodeName string
	Created           time.Time
	// Report is the state in v1beta2; nil unless Options.Reports is set, and for nodes without object.
	Report   *Report
	Children []*Node

	first bool // comes before its siblings
	alone bool // must not be grouped
	// listed: Conditions are all conditions of the object. Otherwise, they are the one that Ready does not summarize.
	listed bool
}

// RowName is the name of the node in a table, without colors.
func (n *Node) RowName() string {
	if n.MetaName != "" && n.Kind != "" {
		return n.MetaName + " - " + n.objectName()
	}
	return n.objectName()
}

func (n *Node) objectName() string {
	if n.Kind == "" || len(n.Group) > 0 {
		return n.Name
	}
	return n.Kind + "/" + n.Name
}

// sort sorts the descendants in display order.
func (n *Node) sort() {
	slices.SortStableFunc(n.Children, func(a, b *Node) int {
		if a.first != b.first {
			if a.first {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.RowName(), b.RowName())
	})
	for _, child := range n.Children {
		child.sort()
	}
}

// virtual returns a node that only groups others.
func virtual(name string) *Node { return &Node{Name: name} }

// objectNode returns the node of an object.
func (b *builder) objectNode(u *unstructured.Unstructured, metaName string) *Node {
	created := u.GetCreationTimestamp()
	n := &Node{
		Kind: u.GetKind(), Name: u.GetName(), APIVersion: u.GetAPIVersion(), Namespace: u.GetNamespace(), MetaName: metaName,
		Deleting: u.GetDeletionTimestamp() != nil, Created: created.Time, Replicas: replicasOf(u),
		Version: versionOf(u), NodeName: at[string](u, "status", "nodeRef", "name"),
	}
	shown, byName := b.showConditions(n)
	n.alone = byName
	for _, c := range Conditions(u) {
		switch {
		case c.Type == string(clusterv1.ReadyV1Beta1Condition):
			n.Ready = &c
		case shown || c.Status != "True" && unsummarized(u) == clusterv1.ConditionType(c.Type):
			n.Conditions = append(n.Conditions, c)
		}
	}
	n.listed = shown
	if deleted := u.GetDeletionTimestamp(); deleted != nil {
		n.Deleted = deleted.Time
	}
	if b.Reports {
		n.Report = reportOf(u)
		n.Conditions, n.listed = b.shownConditions(n)
		n.alone = n.listed && !b.showsAll()
		if !n.listed {
			n.Conditions = n.Report.unsummarized(u)
		}
	}
	if op, err := fleetv1.OperationOf(u); err == nil && op != nil {
		n.Conditions = append(n.Conditions, Condition{
			Type: "Operation", Status: "True", Reason: string(op.Mode),
			Message: fmt.Sprintf("%s %s is in progress: see clusterctl explain cluster", op.Kind, op.Name),
		})
	}
	return n
}

// unsummarized returns the condition that Ready does not summarize, and without which something is wrong: it is shown unless it is True.
func unsummarized(u *unstructured.Unstructured) clusterv1.ConditionType {
	switch kind := u.GroupVersionKind().GroupKind(); {
	case kind == ClusterKind.GroupKind():
		return clusterv1.TopologyReconciledV1Beta1Condition
	case kind == MachineKind.GroupKind() && u.GetDeletionTimestamp() == nil && at[string](u, "status", "nodeRef", "name") != "":
		return clusterv1.MachineNodeHealthyV1Beta1Condition
	}
	return ""
}

func replicasOf(u *unstructured.Unstructured) *DocumentReplicas {
	if _, found, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "replicas"); !found {
		return nil
	}
	return &DocumentReplicas{Ready: at[int64](u, "status", "readyReplicas"), Desired: at[int64](u, "spec", "replicas")}
}

// versionOf returns the desired Kubernetes version of an object.
func versionOf(u *unstructured.Unstructured) string {
	return cmp.Or(at[string](u, "spec", "topology", "version"), at[string](u, "spec", "version"),
		at[string](u, "spec", "template", "spec", "version"))
}

// at returns the value of a field, or the zero value if there is none of that type.
func at[T any](u *unstructured.Unstructured, path ...string) T {
	field, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	value, _ := field.(T)
	return value
}

// showConditions reports whether to show all conditions of an object, and whether the user requested this object or kind:
// then it must not be hidden or grouped.
func (b *builder) showConditions(n *Node) (shown, asked bool) {
	for _, wanted := range b.ShowConditions {
		switch wanted = strings.TrimSpace(wanted); {
		case wanted == n.Kind, wanted == n.Kind+"/"+n.Name:
			return true, true
		case strings.EqualFold(wanted, "all"):
			shown = true
		}
	}
	return shown, false
}

// Conditions returns the conditions of an object, sorted by type. Of conditions in other formats, it returns the known
// fields.
func Conditions(u *unstructured.Unstructured) []Condition {
	field, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	items, _ := field.([]any)
	list := conditionsIn(items)
	slices.SortStableFunc(list, func(a, b Condition) int { return cmp.Compare(a.Type, b.Type) })
	return list
}

// conditionsIn returns the conditions in a list, in its order.
func conditionsIn(items []any) []Condition {
	var list []Condition
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		text := func(key string) string { s, _ := m[key].(string); return s }
		c := Condition{
			Type: text("type"), Status: text("status"), Severity: text("severity"), Reason: text("reason"), Message: text("message"),
		}
		if since, err := time.Parse(time.RFC3339, text("lastTransitionTime")); err == nil {
			c.Since = since
		}
		if c.Type != "" {
			list = append(list, c)
		}
	}
	return list
}

// ConditionOf returns the condition of that type, or nil.
func ConditionOf(u *unstructured.Unstructured, conditionType string) *Condition {
	for _, c := range Conditions(u) {
		if c.Type == conditionType {
			return &c
		}
	}
	return nil
}

// grouped replaces children of the same kind in the same state by one node for all of them.
func grouped(children []*Node, plural func(kind string) string) []*Node {
	type state struct {
		kind, status, severity, reason string
		known, deleting                bool
		// unsummarized is the status and reason of the condition that Ready does not summarize.
		unsummarized string
	}
	members := map[state][]*Node{}
	var order []state
	var result []*Node
	for _, n := range children {
		if n.Kind == "" || n.alone {
			result = append(result, n)
			continue
		}
		s := state{kind: n.Kind, deleting: n.Deleting}
		if n.Ready != nil {
			s.status, s.severity, s.reason, s.known = n.Ready.Status, n.Ready.Severity, n.Ready.Reason, true
		}
		if n.Report != nil {
			s = state{kind: n.Kind, deleting: n.Deleting, unsummarized: n.Report.state()}
		} else if !n.listed && len(n.Conditions) > 0 {
			s.unsummarized = n.Conditions[0].Status + " " + n.Conditions[0].Reason
		}
		if members[s] == nil {
			order = append(order, s)
		}
		members[s] = append(members[s], n)
	}
	for _, s := range order {
		if list := members[s]; len(list) == 1 {
			result = append(result, list[0])
		} else {
			result = append(result, groupOf(list, plural))
		}
	}
	return result
}

func groupOf(list []*Node, plural func(string) string) *Node {
	group := &Node{
		Kind: list[0].Kind + "Group", Name: fmt.Sprintf("%d %s...", len(list), plural(list[0].Kind)), Deleting: list[0].Deleting,
	}
	for _, n := range list {
		group.Group = append(group.Group, n.Name)
		if group.Deleted.IsZero() || n.Deleted.Before(group.Deleted) {
			group.Deleted = n.Deleted
		}
	}
	if !list[0].listed {
		group.Conditions = list[0].Conditions
	}
	slices.Sort(group.Group)
	message := "See " + strings.Join(group.Group[:2], ", ")
	if len(group.Group) > 2 {
		message += ", ..."
	}
	if list[0].Report != nil {
		group.Report = mergeReports(list, message)
	}
	if list[0].Ready == nil {
		group.Ready = &Condition{Message: message}
		return group
	}
	ready := *list[0].Ready
	for _, n := range list[1:] {
		if n.Ready.Since.Before(ready.Since) {
			ready.Since = n.Ready.Since
		}
	}
	ready.Message = message
	group.Ready = &ready
	return group
}
