package move

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/transfer"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

// input is what the checks need; they are pure functions of it.
type input struct {
	// ID is the identity of the move.
	ID string
	// Graph is the objects to move.
	Graph *graph.Graph
	// Source and Target are the installed providers.
	Source, Target inventory.Inventory
	// Existing are the objects of the target.
	Existing []graph.Object
	// Served reports whether the target serves a kind.
	Served func(schema.GroupVersionKind) bool
	// MissingClasses are the ClusterClasses of other namespaces that can neither be copied nor exist in the target.
	MissingClasses []types.NamespacedName
	// NoCluster is true without a target cluster, whose providers and objects could be checked. Backup is true if the target is a directory.
	NoCluster, Backup bool
	// KeepPaused lets what is paused be moved.
	KeepPaused bool
}

// check is one reason why a move cannot start.
type check struct {
	name string
	// always is true for checks that are repeated when an interrupted move is continued.
	always bool
	// cluster is true for checks that need a target cluster.
	cluster bool
	// restored is what happens after a restore to objects that do not pass. They are written to a directory nevertheless: the source stays as
	// it is, and a backup that is not exact is better than none. Empty: the check is also one of directories.
	restored string
	find     func(input) []finding
}

// finding is a violation of a check.
type finding struct {
	// object may be empty.
	object          string
	problem, remedy string
}

// Error implements error.
func (f finding) Error() string {
	text := f.problem
	if f.object != "" {
		text = f.object + " " + text
	}
	if f.remedy != "" {
		text += ": " + f.remedy
	}
	return text
}

// texts returns a function that finds problems of the whole.
func texts(find func(input) []string) func(input) []finding {
	return func(in input) []finding {
		var all []finding
		for _, text := range find(in) {
			all = append(all, finding{problem: text})
		}
		return all
	}
}

func checks() []check {
	return []check{
		{name: "nothing is paused", find: texts(paused)},
		{name: "Clusters are provisioned", restored: "is not provisioned: after a restore, providers begin again with what they had not recorded",
			find: provisioned},
		{name: "Machines have a Node",
			restored: "has no Node: after a restore, its provider may create a second machine if it had not recorded the first", find: nodes},
		{name: "nothing is being deleted", restored: "is being deleted: after a restore it is not, until you delete it again", find: deleting},
		{name: "the target has the providers", always: true, cluster: true, find: texts(providers)},
		{name: "the target serves the kinds", always: true, cluster: true, find: texts(kinds)},
		{name: "the target has the ClusterClasses of other namespaces", cluster: true, find: texts(sharedClasses)},
		{name: "the target has no active Cluster of the same name", always: true, cluster: true, find: texts(occupied)},
	}
}

// imprecise returns what of a directory will not be as it was.
func imprecise(in input) []string {
	var all []string
	for _, c := range checks() {
		if c.restored == "" {
			continue
		}
		var objects []string
		for _, f := range c.find(in) {
			objects = append(objects, f.object)
		}
		if len(objects) > shown {
			objects = append(objects[:shown], fmt.Sprintf("%d others", len(objects)-shown))
		}
		if len(objects) > 0 {
			all = append(all, fmt.Sprintf("%s %s", strings.Join(objects, ", "), c.restored))
		}
	}
	return all
}

// checkStart returns one error with everything that prevents the move. started is true if the move was interrupted before.
func checkStart(in input, started bool) error {
	var problems []error
	for _, c := range checks() {
		if started && !c.always || in.NoCluster && c.cluster || in.Backup && c.restored != "" {
			continue
		}
		for _, f := range c.find(in) {
			problems = append(problems, f)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("the move cannot start, nothing was changed: %w", errors.Join(problems...))
}

// paused reports what users have paused: controllers may be in the middle of something. What a move has paused that nothing remembers is
// not reported.
func paused(in input) []string {
	if in.KeepPaused {
		return nil
	}
	var problems []string
	for _, kind := range []struct {
		name    string
		selects func(graph.Object) bool
	}{{"Clusters", graph.Object.IsCluster}, {"ClusterClasses", graph.Object.IsClass}} {
		var names []string
		for _, n := range in.Graph.Select(func(n *graph.Node) bool { return kind.selects(n.Object) }) {
			if n.Paused() && transfer.PausedBy(n.Object) == "" {
				names = append(names, n.Key().NamespacedName.String())
			}
		}
		if len(names) > 0 {
			problems = append(problems, fmt.Sprintf("cannot start operation while the following %s are paused: %s: "+
				"resume them, or set --keep-paused to move them as they are", kind.name, strings.Join(names, ", ")))
		}
	}
	return problems
}

func provisioned(in input) []finding {
	var problems []finding
	for _, n := range in.Graph.Select(func(n *graph.Node) bool { return n.IsCluster() }) {
		object := n.Unstructured.Object
		infrastructure, _, _ := unstructured.NestedBool(object, "status", "infrastructureReady")
		_, controlPlane, _ := unstructured.NestedMap(object, "spec", "controlPlaneRef")
		ready, _, _ := unstructured.NestedBool(object, "status", "controlPlaneReady")
		var missing []string
		if !infrastructure {
			missing = append(missing, "status.infrastructureReady is not true")
		}
		if !conditionTrue(n.Object, "ControlPlaneInitialized") {
			missing = append(missing, "condition ControlPlaneInitialized is not True")
		}
		if controlPlane && !ready {
			missing = append(missing, "status.controlPlaneReady is not true")
		}
		if len(missing) > 0 {
			problems = append(problems, finding{n.Key().String(), "is not provisioned: " + strings.Join(missing, ", "), "wait until it is"})
		}
	}
	return problems
}

func conditionTrue(o graph.Object, conditionType string) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Unstructured.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(item any) bool {
		c, ok := item.(map[string]any)
		return ok && c["type"] == conditionType && c["status"] == "True"
	})
}

func nodes(in input) []finding {
	var problems []finding
	machine := schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Machine"}
	for _, n := range in.Graph.Nodes {
		if n.Kind.GroupKind() != machine {
			continue
		}
		if _, found, _ := unstructured.NestedMap(n.Unstructured.Object, "status", "nodeRef"); !found {
			problems = append(problems, finding{n.Key().String(), "has no status.nodeRef", "wait until its Node is ready, or delete it"})
		}
	}
	return problems
}

func deleting(in input) []finding {
	var problems []finding
	for _, n := range in.Graph.Nodes {
		if n.GetDeletionTimestamp() != nil && !n.Global {
			problems = append(problems, finding{n.Key().String(), "is being deleted, which a copy would not be", "wait until it is gone"})
		}
	}
	return problems
}

func providers(in input) []string {
	var problems []string
	for _, p := range in.Source {
		installed := in.Target.Of(p.GetProviderType(), p.ProviderName)
		switch {
		case len(installed) == 0:
			problems = append(problems,
				fmt.Sprintf("the target cluster does not have provider %s: install it with `clusterctl init`, or `clusterctl operator init`",
					p.ManifestLabel()))
		case !slices.ContainsFunc(installed, func(t clusterctlv1.Provider) bool { return !older(t.Version, p.Version) }):
			problems = append(problems, fmt.Sprintf("provider %s has version %s in the target cluster, "+
				"older than %s in the source cluster: upgrade it", p.ManifestLabel(), installed[0].Version, p.Version))
		}
	}
	return problems
}

// older reports whether a is a lower version than b. Versions that cannot be compared are not.
func older(a, b string) bool {
	x, errX := semver.ParseTolerant(a)
	y, errY := semver.ParseTolerant(b)
	return errX == nil && errY == nil && x.LT(y)
}

func kinds(in input) []string {
	var problems []string
	seen := map[schema.GroupVersionKind]bool{}
	for _, n := range in.Graph.Nodes {
		kind := n.Kind.GroupVersionKind
		if seen[kind] {
			continue
		}
		seen[kind] = true
		if !in.Served(kind) {
			problems = append(problems, fmt.Sprintf("the target cluster does not serve kind %s of %s, which %s has: "+
				"install its provider, or upgrade it", kind.Kind, kind.GroupVersion(), n.Key()))
		}
	}
	return problems
}

func occupied(in input) []string {
	var problems []string
	moved := map[graph.Key]bool{}
	for _, n := range in.Graph.Select(func(n *graph.Node) bool { return n.IsCluster() }) {
		moved[n.Key()] = true
	}
	for _, o := range in.Existing {
		if moved[o.Key()] && !o.Paused() && transfer.PausedBy(o) != in.ID {
			problems = append(problems, fmt.Sprintf("the target cluster already has %s, and it is not paused: "+
				"delete or rename it, or set its spec.paused if the move shall replace it", o.Key()))
		}
	}
	return problems
}
