// Package ownership handles owner references and the cluster-name label: which Cluster an object belongs to, and which object
// controls it. It also has what owners of Machines agree on: which of them are deleted first.
package ownership

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Reference returns an owner reference to an object of a kind. With controller, it is the reference of the object's controller, and
// blocks the deletion of the owner in the foreground.
func Reference(owner metav1.Object, kind schema.GroupVersionKind, controller bool) metav1.OwnerReference {
	if controller {
		return *metav1.NewControllerRef(owner, kind)
	}
	return metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.GetName(), UID: owner.GetUID()}
}

// Ensure adds ref to refs, or replaces a reference to the same owner that differs, for example in an API version that is no longer served.
// It returns false if nothing changed.
func Ensure(refs []metav1.OwnerReference, ref metav1.OwnerReference) (out []metav1.OwnerReference, changed bool) {
	i := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return sameOwner(r, ref) })
	if i < 0 {
		return append(slices.Clone(refs), ref), true
	}
	if equal(refs[i], ref) {
		return refs, false
	}
	out = slices.Clone(refs)
	out[i] = ref
	return out, true
}

// EnsureController is Ensure for a controller reference of obj. It returns an error if another object controls obj.
func EnsureController(obj metav1.Object, ref metav1.OwnerReference) (changed bool, err error) {
	if other := metav1.GetControllerOf(obj); other != nil && !sameOwner(*other, ref) {
		return false, fmt.Errorf("%s/%s is already controlled by %s %s, so it cannot be controlled by %s %s: use another object",
			obj.GetNamespace(), obj.GetName(), other.Kind, other.Name, ref.Kind, ref.Name)
	}
	refs, changed := Ensure(obj.GetOwnerReferences(), ref)
	obj.SetOwnerReferences(refs)
	return changed, nil
}

func sameOwner(a, b metav1.OwnerReference) bool {
	ga, errA := schema.ParseGroupVersion(a.APIVersion)
	gb, errB := schema.ParseGroupVersion(b.APIVersion)
	return errA == nil && errB == nil && ga.Group == gb.Group && a.Kind == b.Kind && a.Name == b.Name
}

func equal(a, b metav1.OwnerReference) bool {
	deref := func(p *bool) bool { return p != nil && *p }
	return sameVersion(a.APIVersion, b.APIVersion) && a.UID == b.UID && deref(a.Controller) == deref(b.Controller) &&
		deref(a.BlockOwnerDeletion) == deref(b.BlockOwnerDeletion)
}

// KeepVersions returns refs with the API versions that present has for the same owners, if both are served: what only differs in that needs
// no write. It returns false if nothing changed.
func KeepVersions(refs, present []metav1.OwnerReference) (out []metav1.OwnerReference, changed bool) {
	out = slices.Clone(refs)
	for i := range out {
		at := slices.IndexFunc(present, func(r metav1.OwnerReference) bool { return sameOwner(r, out[i]) })
		if at >= 0 && out[i].APIVersion != present[at].APIVersion && sameVersion(out[i].APIVersion, present[at].APIVersion) {
			out[i].APIVersion, changed = present[at].APIVersion, true
		}
	}
	return out, changed
}

// sameVersion reports whether two API versions of a group need not be told apart in owner references: package apiversion writes the
// stored one.
func sameVersion(a, b string) bool {
	if a == b {
		return true
	}
	served := func(apiVersion string) bool {
		return strings.HasSuffix(apiVersion, "/v1beta1") || strings.HasSuffix(apiVersion, "/v1beta2")
	}
	return served(a) && served(b)
}

// Has reports whether owner is one of the owners of obj, by UID.
func Has(obj metav1.Object, owner metav1.Object) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() })
}

// ClusterOf returns the Cluster that an object belongs to, by its cluster-name label or else by an owner reference.
// It returns nil without an error if there is none, or if it does not exist.
func ClusterOf(ctx context.Context, c client.Reader, obj client.Object) (*clusterv1.Cluster, error) {
	name := obj.GetLabels()[clusterv1.ClusterNameLabel]
	for _, r := range obj.GetOwnerReferences() {
		if gv, err := schema.ParseGroupVersion(r.APIVersion); err == nil && name == "" &&
			gv.Group == clusterv1.GroupVersion.Group && r.Kind == clusterv1.ClusterKind {
			name = r.Name
		}
	}
	if name == "" {
		return nil, nil
	}
	return ClusterNamed(ctx, c, client.ObjectKey{Namespace: obj.GetNamespace(), Name: name})
}

// ClusterNamed returns a Cluster, or nil without an error if it does not exist.
func ClusterNamed(ctx context.Context, c client.Reader, key client.ObjectKey) (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{}
	if err := c.Get(ctx, key, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Cluster %s: %w", key, err)
	}
	return cluster, nil
}

// PausedByCluster returns a function that reports whether the Cluster of an object is paused, for step.Controller.
func PausedByCluster[T client.Object](c client.Reader) func(context.Context, T) (bool, error) {
	return func(ctx context.Context, obj T) (bool, error) {
		cluster, err := ClusterOf(ctx, c, obj)
		return cluster != nil && ptr.Deref(cluster.Spec.Paused, false), err
	}
}
