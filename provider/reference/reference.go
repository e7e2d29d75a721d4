// Package reference follows references from Clusters and Machines to the objects of providers: it reads
// the object, watches its kind, makes the referring object its controller, copies what both kinds copy in the
// same way (Ready, terminal failures), and deletes the object with the referring one. Templates, which many
// share, get one more owner.
//
// Events of a provider's object wake whoever refers to it, found by an index: an owner reference would not
// do, because an object that a user makes after the Cluster or Machine that refers to it has none yet.
//
// What else the object says is read with provider/contract, and is the referring object's controller's business.
package reference

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/watch"
)

// Follower follows the references of one kind of objects.
type Follower struct {
	Client client.Client
	// Live reads past the cache: an object that is to be deleted is gone when the API server says so. Nil: when the cache
	// does not show it.
	Live    client.Reader
	Reader  external.Reader
	Watcher *external.Watcher
	// Kind is the kind that holds the references.
	Kind schema.GroupVersionKind
	// Referrers is an empty list of that kind. Client finds its objects by Index.
	Referrers client.ObjectList
}

// Index is the index of referring objects by what they refer to; Keys are its values.
const Index = "references"

// Keys are the Index values of an object that holds refs. Versions do not count; nil and empty references
// have none.
func Keys(refs ...*corev1.ObjectReference) []string {
	var out []string
	for _, ref := range refs {
		if ref != nil && ref.Name != "" {
			out = append(out, key(ref.GroupVersionKind().GroupKind(), ref.Name))
		}
	}
	return out
}

func key(kind schema.GroupKind, name string) string { return kind.String() + "/" + name }

// Requests are the objects that refer to obj.
func (f *Follower) Requests(ctx context.Context, obj client.Object) []reconcile.Request {
	list, ok := f.Referrers.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil
	}
	what := key(obj.GetObjectKind().GroupVersionKind().GroupKind(), obj.GetName())
	return watch.Requests(ctx, f.Client, list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{Index: what})
}

// Follow returns the object that ref names, or nil when it does not exist (yet): its kind is watched then,
// so that its creation wakes the controller. Ref's API version is brought up to date.
func (f *Follower) Follow(ctx context.Context, ref *corev1.ObjectReference, namespace string) (*unstructured.Unstructured, error) {
	if _, err := f.Reader.Versions.Refresh(ctx, ref); err != nil {
		return nil, err
	}
	referrers := handler.EnqueueRequestsFromMapFunc(f.Requests)
	if err := f.Watcher.Watch(ctx, ref.GroupVersionKind(), referrers, predicate.ResourceVersionChangedPredicate{}); err != nil {
		return nil, err
	}
	obj, err := f.Reader.Get(ctx, ref, namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

// Own makes owner the controller of obj and labels obj with the cluster's name, if it is not so already.
// Formers are kinds whose control over obj ends with that: a MachineSet makes objects for its Machines.
func (f *Follower) Own(ctx context.Context, obj *unstructured.Unstructured, owner metav1.Object, cluster string, formers ...string) error {
	before := obj.DeepCopy()
	release(obj, formers)
	if _, err := ownership.EnsureController(obj, ownership.Reference(owner, f.Kind, true)); err != nil {
		return fmt.Errorf("taking over %s: %w", obj.GetKind(), err)
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

// release drops owner references of the given kinds, which only stood in until the real owner took over.
func release(obj *unstructured.Unstructured, kinds []string) {
	var kept []metav1.OwnerReference
	for _, r := range obj.GetOwnerReferences() {
		former := false
		for _, kind := range kinds {
			former = former || r.Kind == kind
		}
		if !former {
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
