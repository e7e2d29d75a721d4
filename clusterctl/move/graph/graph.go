// Package graph decides which objects of a management cluster are moved, and in which order: a pure function of the objects
// and the labels of their CRDs.
//
// It makes no requests; package discovery reads the objects.
package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

const (
	coreGroup   = "cluster.x-k8s.io"
	addonsGroup = "addons.cluster.x-k8s.io"
)

// Kinds with rules of their own.
var (
	cluster = schema.GroupKind{Group: coreGroup, Kind: "Cluster"}
	class   = schema.GroupKind{Group: coreGroup, Kind: "ClusterClass"}
	set     = schema.GroupKind{Group: addonsGroup, Kind: "ClusterResourceSet"}
	// rule has no owner. Without its rules, the target would drain Nodes of the Clusters that it gets in another way.
	rule    = schema.GroupKind{Group: coreGroup, Kind: "MachineDrainRule"}
	binding = schema.GroupKind{Group: addonsGroup, Kind: "ClusterResourceSetBinding"}
	secret  = schema.GroupKind{Kind: "Secret"}
)

// Kind is a kind whose objects may be moved.
type Kind struct {
	schema.GroupVersionKind
	// Namespaced is the scope of the kind.
	Namespaced bool
	// Move and Hierarchy report whether the CRD has the labels of these names, which apply to all its objects.
	Move, Hierarchy bool
}

// Object is an object with its kind.
type Object struct {
	*unstructured.Unstructured
	Kind Kind
	// Shared is true for a ClusterClass that Clusters of other namespaces use, or that is in another namespace. It is copied with the
	// templates that it owns or that are Shared, too, and stays in the source.
	Shared bool
}

// Key identifies an object in any cluster.
type Key struct {
	schema.GroupKind
	types.NamespacedName
}

// String returns kind, namespace and name.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.NamespacedName.String()
}

// Key returns the object's key.
func (o Object) Key() Key {
	return Key{GroupKind: o.Kind.GroupKind(), NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// Node is an object that is moved.
type Node struct {
	Object
	// Global objects are created where they do not exist, but neither updated nor removed: cluster-scoped objects,
	// those that only belong to hierarchies of cluster-scoped objects, and shared ClusterClasses with their templates.
	Global bool
	// Level is 0 for objects without owners among the moved objects, otherwise one more than the highest of an owner.
	Level int
	// Why is the reason why it is moved, for messages.
	Why string
}

// Graph is the objects to move, sorted by level, kind and key.
type Graph struct {
	Nodes []*Node
}

// IsCluster reports whether the object is a Cluster.
func (o Object) IsCluster() bool { return o.Kind.GroupKind() == cluster }

// IsClass reports whether the object is a ClusterClass.
func (o Object) IsClass() bool { return o.Kind.GroupKind() == class }

// Levels returns the objects by level: owners first, so that their UIDs are known when their dependents are created.
func (g *Graph) Levels() [][]*Node {
	var levels [][]*Node
	for _, n := range g.Nodes {
		for len(levels) <= n.Level {
			levels = append(levels, nil)
		}
		levels[n.Level] = append(levels[n.Level], n)
	}
	return levels
}

// Select returns the objects that the function selects, in the order of the graph.
func (g *Graph) Select(selects func(*Node) bool) []*Node {
	var found []*Node
	for _, n := range g.Nodes {
		if selects(n) {
			found = append(found, n)
		}
	}
	return found
}

// vertex is an object during Build.
type vertex struct {
	Object
	owners     []*vertex
	dependents []*vertex
	// namespaced and global report whether the object belongs to the hierarchy of a namespaced, a cluster-scoped root.
	namespaced, global bool
	forced             bool // moved even if it belongs to none
	state              int
	level              int
}

// States of a vertex while levels are computed.
const (
	unvisited = iota
	visiting
	visited
)

// Build selects and orders the objects to move. Moved are:
//
//   - Clusters, ClusterClasses, ClusterResourceSets, MachineDrainRules, and objects with the label move-hierarchy, on them or on their CRD:
//     the roots;
//   - what is owned by roots, directly or indirectly, by owner references or by the rules of link;
//   - objects with the label move, on them or on their CRD;
//   - objects that are Shared.
//
// Objects that own each other are an error.
func Build(objects []Object) (*Graph, error) {
	return build(objects, isRoot, func(o Object) bool { return o.Kind.Move || hasLabel(o, clusterctlv1.ClusterctlMoveLabel) })
}

// Below returns the objects that the function selects, and what belongs to them.
func Below(objects []Object, root func(Object) bool) (*Graph, error) {
	return build(objects, root, func(Object) bool { return false })
}

func build(objects []Object, root, forced func(Object) bool) (*Graph, error) {
	vertices := make([]*vertex, len(objects))
	for i, o := range objects {
		vertices[i] = &vertex{Object: o, forced: forced(o)}
	}
	link(vertices)
	share(vertices)
	for _, v := range vertices {
		if root(v.Object) {
			v.reach(v.Kind.Namespaced && !v.Shared)
		}
	}
	g := &Graph{}
	for _, v := range vertices {
		if !v.moved() {
			continue
		}
		if err := v.rank(nil); err != nil {
			return nil, err
		}
		g.Nodes = append(g.Nodes, &Node{Object: v.Object, Global: v.isGlobal(), Level: v.level, Why: v.why()})
	}
	slices.SortFunc(g.Nodes, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Kind.Kind, b.Kind.Kind),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return g, nil
}

func isRoot(o Object) bool {
	switch o.Kind.GroupKind() {
	case cluster, class, set, rule:
		return true
	}
	return o.Kind.Hierarchy || hasLabel(o, clusterctlv1.ClusterctlMoveHierarchyLabel)
}

func hasLabel(o Object, label string) bool {
	_, ok := o.GetLabels()[label]
	return ok
}

func (v *vertex) moved() bool {
	return v.namespaced || v.global || v.forced || v.Shared
}

func (v *vertex) isGlobal() bool { return v.Shared || !v.Kind.Namespaced || v.global && !v.namespaced }

// share marks the templates of shared ClusterClasses: they stay even if a class that is removed owns them, too.
func share(vertices []*vertex) {
	for _, v := range vertices {
		if !v.Shared || !v.IsClass() {
			continue
		}
		for _, d := range v.dependents {
			d.Shared = d.Shared || !d.IsCluster()
		}
	}
}

// why returns the reason why the object is moved.
func (v *vertex) why() string {
	if v.Shared && v.IsClass() {
		return "Clusters of several namespaces can use it: it is copied, and stays"
	}
	for _, o := range v.owners {
		if o.namespaced || o.global {
			return "belongs to " + o.Key().String()
		}
	}
	switch v.Kind.GroupKind() {
	case cluster, class, set, rule:
		return "all objects of its kind are moved"
	}
	if v.Shared {
		return "a ClusterClass of its namespace refers to it"
	}
	if v.forced {
		return "it, or its kind, has the label " + clusterctlv1.ClusterctlMoveLabel
	}
	return "it, or its kind, has the label " + clusterctlv1.ClusterctlMoveHierarchyLabel
}

// reach marks everything below a root.
func (v *vertex) reach(namespaced bool) {
	mark := &v.global
	if namespaced {
		mark = &v.namespaced
	}
	if *mark {
		return
	}
	*mark = true
	for _, d := range v.dependents {
		d.reach(namespaced)
	}
}

// rank computes the level. path is how the vertex was reached, for the error about a cycle.
func (v *vertex) rank(path []string) error {
	path = append(slices.Clip(path), v.Key().String())
	switch v.state {
	case visited:
		return nil
	case visiting:
		return fmt.Errorf("cannot order the objects to move, because some own each other: %s: correct their owner references",
			strings.Join(path, " is owned by "))
	}
	v.state = visiting
	for _, o := range v.owners {
		if !o.moved() {
			continue
		}
		if err := o.rank(path); err != nil {
			return err
		}
		v.level = max(v.level, o.level+1)
	}
	v.state = visited
	return nil
}

// link connects objects with their owners: by owner references, and
//
//   - Secrets without owners with the Cluster in their name, if the rest of it is a purpose of package pki;
//   - Clusters with their ClusterClass, also of another namespace;
//   - ClusterResourceSetBindings with their Cluster.
func link(vertices []*vertex) {
	byUID := map[types.UID]*vertex{}
	byKey := map[Key]*vertex{}
	for _, v := range vertices {
		byUID[v.GetUID()] = v
		byKey[v.Key()] = v
	}
	for _, v := range vertices {
		for _, ref := range v.GetOwnerReferences() {
			v.ownedBy(byUID[ref.UID])
		}
		v.ownedBy(byKey[softOwner(v.Object)])
	}
}

func (v *vertex) ownedBy(owner *vertex) {
	if owner == nil || slices.Contains(v.owners, owner) {
		return
	}
	v.owners = append(v.owners, owner)
	owner.dependents = append(owner.dependents, v)
}

// softOwner returns the owner that an object has without an owner reference; it may not exist.
func softOwner(o Object) Key {
	key := func(kind schema.GroupKind, name string) Key {
		return Key{GroupKind: kind, NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}
	}
	switch o.Kind.GroupKind() {
	case secret:
		// What users provide has no owner.
		if name, _, ok := pki.SplitSecretName(o.GetName()); ok && len(o.GetOwnerReferences()) == 0 {
			return key(cluster, name)
		}
	case cluster:
		if name, _ := tree.Class(o.Unstructured); name.Name != "" {
			return Key{GroupKind: class, NamespacedName: name}
		}
	case binding:
		if name, _, _ := unstructured.NestedString(o.Unstructured.Object, "spec", "clusterName"); name != "" {
			return key(cluster, name)
		}
	}
	return Key{}
}

// Paused reports whether a Cluster is paused by its spec, or another object by its annotation.
func (o Object) Paused() bool {
	if o.IsCluster() {
		paused, _, _ := unstructured.NestedBool(o.Unstructured.Object, "spec", "paused")
		return paused
	}
	_, ok := o.GetAnnotations()[clusterv1.PausedAnnotation]
	return ok
}
