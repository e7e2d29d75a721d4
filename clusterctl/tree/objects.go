package tree

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// The kinds of a tree, besides those of providers.
var (
	ClusterKind            = clusterv1beta1.GroupVersion.WithKind("Cluster")
	MachineKind            = clusterv1beta1.GroupVersion.WithKind("Machine")
	MachineSetKind         = clusterv1beta1.GroupVersion.WithKind("MachineSet")
	MachineDeploymentKind  = clusterv1beta1.GroupVersion.WithKind("MachineDeployment")
	MachinePoolKind        = clusterv1beta1.GroupVersion.WithKind("MachinePool")
	MachineHealthCheckKind = clusterv1beta1.GroupVersion.WithKind("MachineHealthCheck")
	bindingKind            = addonsv1beta1.GroupVersion.WithKind("ClusterResourceSetBinding")
)

// Objects is a set of objects by kind and name, regardless of their version.
type Objects struct {
	kinds map[schema.GroupKind]map[types.NamespacedName]*unstructured.Unstructured
}

// NewObjects returns a set of the given objects, which it does not copy.
func NewObjects(list ...*unstructured.Unstructured) *Objects {
	o := &Objects{kinds: map[schema.GroupKind]map[types.NamespacedName]*unstructured.Unstructured{}}
	for _, u := range list {
		o.Add(u)
	}
	return o
}

// Add adds an object to the set, in v1beta1, and replaces one of the same kind and name.
func (o *Objects) Add(u *unstructured.Unstructured) {
	u = InV1Beta1(u)
	kind := u.GroupVersionKind().GroupKind()
	if o.kinds[kind] == nil {
		o.kinds[kind] = map[types.NamespacedName]*unstructured.Unstructured{}
	}
	o.kinds[kind][types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}] = u
}

// Get returns an object, or nil if it is not in the set.
func (o *Objects) Get(kind schema.GroupKind, name types.NamespacedName) *unstructured.Unstructured {
	return o.kinds[kind][name]
}

// Cluster returns the Cluster of that name, or nil.
func (o *Objects) Cluster(name types.NamespacedName) *unstructured.Unstructured {
	return o.Get(ClusterKind.GroupKind(), name)
}

// Of returns the objects of a kind that belong to a Cluster, by its label, sorted by name.
func (o *Objects) Of(kind schema.GroupVersionKind, cluster types.NamespacedName) []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for name, u := range o.kinds[kind.GroupKind()] {
		if name.Namespace == cluster.Namespace && u.GetLabels()[clusterv1.ClusterNameLabel] == cluster.Name {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, byName)
	return list
}

// All returns every object, sorted by kind, namespace and name.
func (o *Objects) All() []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for _, objects := range o.kinds {
		for _, u := range objects {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetNamespace(), b.GetNamespace()), byName(a, b))
	})
	return list
}

func byName(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) }

// Resolve returns the object that the reference at a path of another object names, or nil if there is no reference or no
// such object.
func (o *Objects) Resolve(from *unstructured.Unstructured, path ...string) *unstructured.Unstructured {
	ref, ok := referenceOf(from, path...)
	if !ok {
		return nil
	}
	return o.Get(ref.kind.GroupKind(), ref.name)
}

// reference is a parsed ObjectReference.
type reference struct {
	kind schema.GroupVersionKind
	name types.NamespacedName
	// leaving is set if the object with the reference is being deleted: the referenced object is deleted before it.
	leaving bool
}

// Paths of references in the objects of a tree.
var (
	clusterInfrastructure  = []string{"spec", "infrastructureRef"}
	clusterControlPlane    = []string{"spec", "controlPlaneRef"}
	machineInfrastructure  = []string{"spec", "infrastructureRef"}
	machineBootstrap       = []string{"spec", "bootstrap", "configRef"}
	templateInfrastructure = []string{"spec", "template", "spec", "infrastructureRef"}
	templateBootstrap      = []string{"spec", "template", "spec", "bootstrap", "configRef"}
	planeInfrastructure    = []string{"spec", "machineTemplate", "infrastructureRef"}
)

func referenceOf(from *unstructured.Unstructured, path ...string) (reference, bool) {
	if from == nil {
		return reference{}, false
	}
	field, _, _ := unstructured.NestedFieldNoCopy(from.Object, path...)
	ref, ok := field.(map[string]any)
	if !ok {
		return reference{}, false
	}
	text := func(key string) string { s, _ := ref[key].(string); return s }
	r := reference{
		kind: schema.FromAPIVersionAndKind(text("apiVersion"), text("kind")),
		name: types.NamespacedName{Namespace: cmp.Or(text("namespace"), from.GetNamespace()), Name: text("name")},
	}
	return r, r.kind.Kind != "" && r.name.Name != ""
}
