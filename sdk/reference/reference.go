// Package reference follows references from Clusters and Machines to provider objects: it reads the object, watches its kind, makes the
// referring object its controller, copies what all such objects have (Ready, terminal failures), and deletes it together with the
// referring object. Templates, which several objects use, get an additional owner.
//
// Events of a provider object reconcile the objects that refer to it, which are found by an index. Owner references do not suffice:
// an object that is created after the reference to it has none yet.
//
// All other fields of the object are read with package contract, by the controller of the referring object.
package reference

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Follower follows the references of objects of one kind.
type Follower struct {
	Client client.Client
	// Live reads without the cache: before Delete considers an object deleted, it must be missing in the API server. Nil: it
	// must be missing in the cache.
	Live    client.Reader
	Reader  external.Reader
	Watcher *external.Watcher
	// Kind is the kind of the referring objects.
	Kind schema.GroupVersionKind
	// Referrers is an empty list of that kind. Client must support listing it by Index.
	Referrers client.ObjectList
}

// OfMachine returns the references in the spec of a Machine, or of a template of Machines: the infrastructure, and the bootstrap
// config if there is one.
func OfMachine(spec *clusterv1.MachineSpec) []*clusterv1.ContractVersionedObjectReference {
	refs := []*clusterv1.ContractVersionedObjectReference{&spec.InfrastructureRef}
	if spec.Bootstrap.ConfigRef.IsDefined() {
		refs = append(refs, &spec.Bootstrap.ConfigRef)
	}
	return refs
}

// Index is the name of the index of referring objects by referenced object. Keys returns its values.
const Index = "references"

// Keys returns the Index values of an object with these references. Those without a name have no value.
func Keys(refs ...*clusterv1.ContractVersionedObjectReference) []string {
	var out []string
	for _, ref := range refs {
		if ref != nil && ref.Name != "" {
			out = append(out, key(ref.GroupKind(), ref.Name))
		}
	}
	return out
}

func key(kind schema.GroupKind, name string) string { return kind.String() + "/" + name }

// Requests returns requests for the objects that refer to obj.
func (f *Follower) Requests(ctx context.Context, obj client.Object) []reconcile.Request {
	list, ok := f.Referrers.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil
	}
	what := key(obj.GetObjectKind().GroupVersionKind().GroupKind(), obj.GetName())
	return watch.Requests(ctx, f.Client, list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{Index: what})
}

// Follow returns the referenced object, or nil if it does not exist (yet). Its kind is watched from then on, so that its creation
// triggers a reconcile.
func (f *Follower) Follow(
	ctx context.Context, ref *clusterv1.ContractVersionedObjectReference, namespace string,
) (*unstructured.Unstructured, error) {
	kind, err := f.Reader.Versions.Newest(ctx, ref.GroupKind())
	if err != nil {
		return nil, err
	}
	referrers := handler.EnqueueRequestsFromMapFunc(f.Requests)
	if err := f.Watcher.Watch(ctx, kind, referrers, predicate.ResourceVersionChangedPredicate{}); err != nil {
		return nil, err
	}
	obj, err := f.Reader.Get(ctx, ref, namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

// mayOwn returns an error unless both objects are in one namespace. A tenant who refers to a cluster-scoped object, such as an identity
// that all namespaces share, must not become its owner: it would be deleted with the tenant's object. The contract requires objects in
// a namespace.
func mayOwn(obj *unstructured.Unstructured, namespace string) error {
	if obj.GetNamespace() == namespace {
		return nil
	}
	where := "in namespace " + obj.GetNamespace()
	if obj.GetNamespace() == "" {
		where = "cluster-scoped"
	}
	return &step.Error{
		Reason: ReferenceInvalidReason,
		Err: fmt.Errorf("%s %s is %s: a reference must name an object in namespace %s, which it is owned in and deleted with",
			obj.GetKind(), obj.GetName(), where, namespace),
	}
}

// Own makes owner the controller of obj, and sets the cluster-name label. Owner references of the kinds in previous are removed: for
// example, a MachineSet owns objects that it creates for a Machine until the Machine exists. An object that another one controls, or
// that is in no or another namespace, is an error, which the step's condition reports.
func (f *Follower) Own(ctx context.Context, obj *unstructured.Unstructured, owner metav1.Object, cluster string, previous ...string) error {
	if err := mayOwn(obj, owner.GetNamespace()); err != nil {
		return err
	}
	before := obj.DeepCopy()
	release(obj, previous)
	if _, err := ownership.EnsureController(obj, ownership.Reference(owner, f.Kind, true)); err != nil {
		return &step.Error{Reason: ReferenceInvalidReason, Err: fmt.Errorf("taking over %s: %w", obj.GetKind(), err)}
	}
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel] = cluster
	obj.SetLabels(labels)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if unchanged(before, obj) {
		return nil
	}
	if err := f.Client.Patch(ctx, obj, patch); err != nil {
		return fmt.Errorf("taking over %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	return nil
}

// Adopt is Follow and Own, and returns the object with the version of the contract that it follows, and whether it exists.
func (f *Follower) Adopt(
	ctx context.Context, ref *clusterv1.ContractVersionedObjectReference, owner metav1.Object, cluster string,
) (obj contract.Object, exists bool, err error) {
	found, err := f.Follow(ctx, ref, owner.GetNamespace())
	if err != nil || found == nil {
		return obj, false, err
	}
	if err := f.Own(ctx, found, owner, cluster); err != nil {
		return obj, false, err
	}
	obj, err = f.Reader.Versions.Object(ctx, found)
	return obj, err == nil, err
}

// release removes owner references of the given kinds.
func release(obj *unstructured.Unstructured, kinds []string) {
	var kept []metav1.OwnerReference
	for _, r := range obj.GetOwnerReferences() {
		if !slices.Contains(kinds, r.Kind) {
			kept = append(kept, r)
		}
	}
	obj.SetOwnerReferences(kept)
}

func unchanged(before, after *unstructured.Unstructured) bool {
	if before.GetLabels()[clusterv1.ClusterNameLabel] != after.GetLabels()[clusterv1.ClusterNameLabel] {
		return false
	}
	a, b := before.GetOwnerReferences(), after.GetOwnerReferences()
	if len(a) != len(b) {
		return false
	}
	for _, ref := range b {
		if _, changed := ownership.Ensure(a, ref); changed {
			return false
		}
	}
	return true
}
