package tree

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Selection is what one request reads: the object of that name, or, without a name, all objects of the kind with the
// Cluster's label.
type Selection struct {
	Kind      schema.GroupVersionKind
	Namespace string
	Name      string
}

// Options are what a tree shows.
type Options struct {
	// ShowConditions lists kinds, as Kind or Kind/name, whose conditions are all shown; "all" means every object's.
	ShowConditions []string
	// MachineSets, ResourceSets, HealthChecks and Templates add objects of these kinds.
	MachineSets, ResourceSets, HealthChecks, Templates bool
	// Echo also shows infrastructure and bootstrap objects with the state of their parent.
	Echo bool
	// Reports shows the conditions and counters of v1beta2.
	Reports bool
	// CountMachines counts the Machines in the row of the Cluster, instead of showing its status, which is written a moment later.
	CountMachines bool
	// Grouping shows Machines in the same state as one line.
	Grouping bool
}

// Selections returns what has to be read for the tree of a Cluster, given the known objects. Call it again after reading,
// until it returns nothing new. The number of selections depends on the number of kinds, never on that of Machines.
func Selections(cluster types.NamespacedName, known *Objects, o Options) []Selection {
	s := selections{seen: map[Selection]bool{}}
	s.one(reference{kind: ClusterKind, name: cluster}, true)
	for _, kind := range []schema.GroupVersionKind{MachineKind, MachineSetKind, MachineDeploymentKind, MachinePoolKind} {
		s.labeled(reference{kind: kind, name: cluster})
	}
	if o.HealthChecks {
		s.labeled(reference{kind: MachineHealthCheckKind, name: cluster})
	}
	if o.ResourceSets {
		s.one(reference{kind: bindingKind, name: cluster}, true)
	}
	c := known.Cluster(cluster)
	s.one(referenceOf(c, clusterInfrastructure...))
	s.one(referenceOf(c, clusterControlPlane...))
	for _, r := range references(cluster, known, o) {
		s.labeled(r)
	}
	return s.list
}

// Overview returns what has to be read for an overview of the Clusters of a namespace, all if it is empty, given the known objects: one
// selection per kind, of all its objects.
func Overview(namespace string, known *Objects) []Selection {
	s := selections{seen: map[Selection]bool{}}
	all := func(kind schema.GroupVersionKind) {
		s.labeled(reference{kind: kind, name: types.NamespacedName{Namespace: namespace}})
	}
	for _, kind := range []schema.GroupVersionKind{ClusterKind, MachineDeploymentKind, MachinePoolKind} {
		all(kind)
	}
	for _, u := range known.kinds[ClusterKind.GroupKind()] {
		if r, ok := referenceOf(u, clusterControlPlane...); ok {
			all(r.kind)
		}
	}
	return s.list
}

// Missing returns references to objects that were selected by the Cluster's label and not found: they lack the label or
// do not exist. They are returned as one Selection per kind and namespace, without a name.
func Missing(cluster types.NamespacedName, known *Objects, o Options) []Selection {
	s := selections{seen: map[Selection]bool{}}
	for _, r := range references(cluster, known, o) {
		if !r.leaving && known.Get(r.kind.GroupKind(), r.name) == nil {
			s.labeled(r)
		}
	}
	return s.list
}

// references returns the references of the Machines and their owners.
func references(cluster types.NamespacedName, known *Objects, o Options) []reference {
	var list []reference
	add := func(from *unstructured.Unstructured, paths ...[]string) {
		for _, path := range paths {
			if r, ok := referenceOf(from, path...); ok {
				r.leaving = from.GetDeletionTimestamp() != nil
				list = append(list, r)
			}
		}
	}
	for _, m := range known.Of(MachineKind, cluster) {
		add(m, machineInfrastructure, machineBootstrap)
	}
	for _, p := range known.Of(MachinePoolKind, cluster) {
		add(p, templateInfrastructure, templateBootstrap)
	}
	if o.Templates {
		add(known.Resolve(known.Cluster(cluster), clusterControlPlane...), planeInfrastructure)
		for _, d := range known.Of(MachineDeploymentKind, cluster) {
			add(d, templateInfrastructure, templateBootstrap)
		}
	}
	return list
}

// Reference is a reference from one object of a Cluster to another.
type Reference struct {
	From *unstructured.Unstructured
	// Path is the field of the reference, such as spec.infrastructureRef.
	Path string
	Kind schema.GroupVersionKind
	Name types.NamespacedName
}

// References returns the references of the Cluster, its control plane, Machines, MachinePools and MachineDeployments, whether
// the referenced objects are known or not.
func References(cluster types.NamespacedName, known *Objects) []Reference {
	var list []Reference
	add := func(from *unstructured.Unstructured, paths ...[]string) {
		for _, path := range paths {
			if r, ok := referenceOf(from, path...); ok {
				list = append(list, Reference{From: from, Path: strings.Join(path, "."), Kind: r.kind, Name: r.name})
			}
		}
	}
	c := known.Cluster(cluster)
	add(c, clusterInfrastructure, clusterControlPlane)
	add(known.Resolve(c, clusterControlPlane...), planeInfrastructure)
	for _, kind := range []schema.GroupVersionKind{MachineDeploymentKind, MachinePoolKind} {
		for _, u := range known.Of(kind, cluster) {
			add(u, templateInfrastructure, templateBootstrap)
		}
	}
	for _, m := range known.Of(MachineKind, cluster) {
		add(m, machineInfrastructure, machineBootstrap)
	}
	return list
}

type selections struct {
	list []Selection
	seen map[Selection]bool
}

func (s *selections) one(r reference, ok bool) {
	if ok {
		s.add(Selection{Kind: r.kind, Namespace: r.name.Namespace, Name: r.name.Name})
	}
}

func (s *selections) labeled(r reference) {
	s.add(Selection{Kind: r.kind, Namespace: r.name.Namespace})
}

func (s *selections) add(selection Selection) {
	if !s.seen[selection] {
		s.seen[selection] = true
		s.list = append(s.list, selection)
	}
}
