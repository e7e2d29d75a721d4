package ready

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// nodeTimeout is how long to wait for Nodes that have joined and are not ready: long enough for a network plugin that is
// starting, short enough for a user who still has to install one.
const nodeTimeout = time.Minute

// reportTimeout is how long to wait for first reports of what is ready: managers hold them back, for a second or two unless they are
// busy. Only the table that commands print then needs them.
const reportTimeout = 5 * time.Second

// Waiter decides when a cluster is ready.
type Waiter struct {
	Cluster types.NamespacedName
	Clock   clock.PassiveClock

	// since is when only the readiness of Nodes was missing for the first time.
	since time.Time
	// complete is when only reports were missing for the first time.
	complete time.Time
	// lacking is what was not ready when the wait ended.
	lacking []string
}

// Remaining returns what is missing until every row of the cluster's tree is ready. It waits at most nodeTimeout for
// unready Nodes of running Machines, and for what depends on them: the user may have to install a network plugin.
func (w *Waiter) Remaining(objects *tree.Objects) ([]string, error) {
	list, err := Remaining(w.Cluster, objects)
	if err != nil {
		return nil, err
	}
	nodes := unreadyNodes(w.Cluster, objects)
	if len(list) > 0 || len(nodes) == 0 {
		w.since = time.Time{}
		if len(list) == 0 {
			list = Unready(w.Cluster, objects)
		}
		if len(list) == 0 {
			return w.reports(objects), nil
		}
		w.complete = time.Time{}
		return list, nil
	}
	if w.since.IsZero() {
		w.since = w.Clock.Now()
	}
	list = append([]string{"Nodes to be ready: " + someOf(nodes)}, Unready(w.Cluster, objects)...)
	if w.Clock.Since(w.since) < nodeTimeout {
		return list, nil
	}
	w.lacking = list
	return nil, nil
}

// reports returns the rows about which nothing is reported yet, for at most reportTimeout. Older managers report nothing.
func (w *Waiter) reports(objects *tree.Objects) []string {
	cluster := objects.Cluster(w.Cluster)
	if !tree.Reported(cluster) {
		return nil
	}
	if w.complete.IsZero() {
		w.complete = w.Clock.Now()
	}
	if w.Clock.Since(w.complete) >= reportTimeout {
		return nil
	}
	rows := append([]*unstructured.Unstructured{cluster}, objects.Of(tree.MachineDeploymentKind, w.Cluster)...)
	if plane := objects.Resolve(cluster, "spec", "controlPlaneRef"); plane != nil && plane.GetKind() == "KubeadmControlPlane" {
		rows = append(rows, plane)
	}
	var list []string
	for _, u := range rows {
		if tree.ReportedCondition(u, clusterv1.AvailableCondition) == nil {
			list = append(list, describe(u)+" to report whether it is available")
		}
	}
	return list
}

// Unready returns the rows of the tree that report that they are not ready. Objects without such a condition are ignored.
func Unready(name types.NamespacedName, objects *tree.Objects) []string {
	cluster := objects.Cluster(name)
	rows := []*unstructured.Unstructured{cluster}
	for _, path := range []string{"infrastructureRef", "controlPlaneRef"} {
		if u := objects.Resolve(cluster, "spec", path); u != nil {
			rows = append(rows, u)
		}
	}
	for _, kind := range []schema.GroupVersionKind{tree.MachineDeploymentKind, tree.MachinePoolKind} {
		rows = append(rows, objects.Of(kind, name)...)
	}
	var list []string
	for _, u := range rows {
		why := because(u, clusterv1.ReadyV1Beta1Condition)
		wanted, counted, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		switch has := tree.Number(u, "status", "readyReplicas"); {
		case why != "":
			list = append(list, describe(u)+" to be ready"+why)
		case unavailable(u) != "":
			list = append(list, describe(u)+" to be available"+unavailable(u))
		case counted && has < wanted:
			list = append(list, fmt.Sprintf("%s to have %d ready Machines instead of %d", describe(u), wanted, has))
		}
	}
	if machines := machinesLacking(name, objects, clusterv1.ReadyV1Beta1Condition); len(machines) > 0 {
		list = append(list, "Machines to be ready: "+someOf(machines))
	}
	return list
}

// unavailable formats the reason and message of Available in v1beta2, which tables show, as a suffix; empty if it is True or not reported.
func unavailable(u *unstructured.Unstructured) string {
	return suffix(tree.ReportedCondition(u, clusterv1.AvailableCondition))
}

// unreadyNodes returns the Machines whose Nodes are not ready.
func unreadyNodes(name types.NamespacedName, objects *tree.Objects) []string {
	return machinesLacking(name, objects, clusterv1.MachineNodeHealthyV1Beta1Condition)
}

// machinesLacking returns the Machines of which a condition is false, and why.
func machinesLacking(name types.NamespacedName, objects *tree.Objects, condition clusterv1.ConditionType) []string {
	var list []string
	for _, m := range objects.Of(tree.MachineKind, name) {
		if c := tree.ConditionOf(m, string(condition)); c != nil && c.Status == "False" {
			list = append(list, m.GetName()+because(m, condition))
		}
	}
	return list
}

// Warning describes what a running cluster still lacks, "" for nothing.
func (w *Waiter) Warning() string {
	if len(w.lacking) == 0 {
		return ""
	}
	return "still waiting for " + strings.Join(w.lacking, "; ")
}
