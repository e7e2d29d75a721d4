package cluster

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// nodePatience is how long Nodes are waited for that have joined and are not ready: long enough for a network plugin
// that is on its way, short enough for a user who has yet to install one.
const nodePatience = time.Minute

// waiter decides when a cluster is what the user waits for.
type waiter struct {
	name  types.NamespacedName
	clock clock.PassiveClock

	// since is when nothing but the readiness of Nodes was missing for the first time.
	since time.Time
	// lacking is what the wait has ended without.
	lacking []string
}

// remaining returns what has to happen until every row of the cluster's tree is ready. Nodes that are not ready although
// their Machines run, and what depends on them, are waited for no longer than nodePatience: what they lack may have to
// come from the user.
func (w *waiter) remaining(objects *tree.Objects) ([]string, error) {
	list, err := remaining(w.name, objects)
	if err != nil {
		return nil, err
	}
	nodes := unreadyNodes(w.name, objects)
	if len(list) > 0 || len(nodes) == 0 {
		w.since = time.Time{}
		if len(list) == 0 {
			list = unready(w.name, objects)
		}
		return list, nil
	}
	if w.since.IsZero() {
		w.since = w.clock.Now()
	}
	list = append([]string{"Nodes to be ready: " + someOf(nodes)}, unready(w.name, objects)...)
	if w.clock.Since(w.since) < nodePatience {
		return list, nil
	}
	w.lacking = list
	return nil, nil
}

// unready returns the rows of the tree that say they are not ready. What does not say it is no reason to wait.
func unready(name types.NamespacedName, objects *tree.Objects) []string {
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
		if why := because(u, clusterv1.ReadyCondition); why != "" {
			list = append(list, describe(u)+" to be ready"+why)
		}
	}
	if machines := machinesLacking(name, objects, clusterv1.ReadyCondition); len(machines) > 0 {
		list = append(list, "Machines to be ready: "+someOf(machines))
	}
	return list
}

// unreadyNodes returns the Machines whose Nodes say that they are not ready.
func unreadyNodes(name types.NamespacedName, objects *tree.Objects) []string {
	return machinesLacking(name, objects, clusterv1.MachineNodeHealthyCondition)
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

// warning says what a cluster that runs still lacks, in a form to be appended to that; "" for nothing.
func (w *waiter) warning() string {
	if len(w.lacking) == 0 {
		return ""
	}
	return "still waiting for " + strings.Join(w.lacking, "; ")
}
