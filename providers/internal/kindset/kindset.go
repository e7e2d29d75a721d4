// Package kindset declares which kinds of objects belong together, so that one controller can reconcile objects of several kinds: it runs
// once for each set, and knows of an object only what the set says.
//
// What controllers need of an object is theirs to declare, as the types C, of the infrastructure of a cluster, and M, of a machine.
package kindset

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// Set is the kinds of clusters and of machines that belong together.
type Set[C, M any] struct {
	// ClusterKind and MachineKind are the names of the kinds.
	ClusterKind, MachineKind string
	// Backend is the backend of the objects, for kinds that have several; empty for others.
	Backend string
	// ClusterFinalizer and MachineFinalizer block the deletion of objects until what was made for them is gone.
	ClusterFinalizer, MachineFinalizer string
	// NewCluster and NewMachine return empty objects, and Clusters and Machines empty lists.
	NewCluster, NewMachine func() step.Object
	Clusters, Machines     func() client.ObjectList
	// ClusterOf and MachineOf return what controllers need of an object; false if it is of another kind, or has another backend.
	ClusterOf func(client.Object) (C, bool)
	MachineOf func(client.Object) (M, bool)
}

// ClusterController returns the name of the controller of clusters, such as devcluster-docker.
func (s Set[C, M]) ClusterController() string { return s.controller(s.ClusterKind) }

// MachineController returns the name of the controller of machines.
func (s Set[C, M]) MachineController() string { return s.controller(s.MachineKind) }

// controller returns the name of a controller. Those of two backends have the same kind.
func (s Set[C, M]) controller(kind string) string {
	if s.Backend == "" {
		return strings.ToLower(kind)
	}
	return strings.ToLower(kind + "-" + s.Backend)
}

// IsCluster reports whether an object is one of the clusters, for step.Controller.Selects.
func (s Set[C, M]) IsCluster(obj step.Object) bool {
	_, ok := s.ClusterOf(obj)
	return ok
}

// IsMachine reports whether an object is one of the machines.
func (s Set[C, M]) IsMachine(obj step.Object) bool {
	_, ok := s.MachineOf(obj)
	return ok
}

// Cluster is ClusterOf for objects of a controller: others are an error.
func (s Set[C, M]) Cluster(obj client.Object) (C, error) {
	c, ok := s.ClusterOf(obj)
	return c, s.unless(ok, obj, s.ClusterKind)
}

// Machine is MachineOf for objects of a controller: others are an error.
func (s Set[C, M]) Machine(obj client.Object) (M, error) {
	m, ok := s.MachineOf(obj)
	return m, s.unless(ok, obj, s.MachineKind)
}

func (s Set[C, M]) unless(ok bool, obj client.Object, kind string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%T %s is not a %s with backend %q", obj, client.ObjectKeyFromObject(obj), kind, s.Backend)
}

// ClusterItems returns the clusters of a list; objects of other backends are left out.
func (s Set[C, M]) ClusterItems(list client.ObjectList) []C { return items(list, s.ClusterOf) }

// MachineItems returns the machines of a list; objects of other backends are left out.
func (s Set[C, M]) MachineItems(list client.ObjectList) []M { return items(list, s.MachineOf) }

func items[T any](list client.ObjectList, of func(client.Object) (T, bool)) []T {
	var out []T
	_ = meta.EachListItem(list, func(o runtime.Object) error { // The function never fails.
		if obj, ok := o.(client.Object); ok {
			if item, ok := of(obj); ok {
				out = append(out, item)
			}
		}
		return nil
	})
	return out
}
