package binding

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// setKind is the kind of owners of bindings, ConfigMaps and Secrets.
func setKind() schema.GroupVersionKind { return addonsv1.GroupVersion.WithKind("ClusterResourceSet") }

// Owner returns the owner reference to a ClusterResourceSet.
func Owner(set *addonsv1.ClusterResourceSet) metav1.OwnerReference {
	return ownership.Reference(set, setKind(), false)
}

// claim adds the missing entries to the binding, and then drops those of ClusterResourceSets that are being deleted.
func (c *Controller) claim(ctx context.Context, s *scope) (step.Result, error) {
	var fresh []*addonsv1.ClusterResourceSet
	for _, w := range s.work {
		if e := s.entry(w.set.Name); (e == nil || len(e.Resources) == 0) && !slices.Contains(fresh, w.set) {
			fresh = append(fresh, w.set)
		}
	}
	if err := c.enter(ctx, s, fresh); err != nil {
		return step.Done(), err
	}
	var gone []*addonsv1.ClusterResourceSet
	for _, set := range fresh {
		live := &addonsv1.ClusterResourceSet{}
		err := c.Live.Get(ctx, client.ObjectKeyFromObject(set), live)
		if client.IgnoreNotFound(err) != nil {
			return step.Done(), fmt.Errorf("reading ClusterResourceSet %s: %w", set.Name, err)
		}
		if err != nil || !live.DeletionTimestamp.IsZero() || live.UID != set.UID {
			gone = append(gone, set)
		}
	}
	if len(gone) == 0 {
		return step.Done(), nil
	}
	s.work = slices.DeleteFunc(s.work, func(w work) bool { return slices.Contains(gone, w.set) })
	return step.Done(), c.Patch(ctx, s.binding, func() {
		for _, set := range gone {
			Remove(s.binding, set)
		}
	}, step.IfUnchanged)
}

// enter writes entries for ClusterResourceSets.
func (c *Controller) enter(ctx context.Context, s *scope, sets []*addonsv1.ClusterResourceSet) error {
	if len(sets) == 0 {
		return nil
	}
	add := func() {
		for _, set := range sets {
			s.binding.GetOrCreateBinding(set)
		}
		complete(s)
	}
	if s.binding != nil {
		return c.Patch(ctx, s.binding, add, step.IfUnchanged)
	}
	s.binding = &addonsv1.ClusterResourceSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: s.cluster.Name}}
	add()
	return c.Create(ctx, s.binding)
}

// Remove removes entry and owner of a ClusterResourceSet from a binding.
func Remove(b *addonsv1.ClusterResourceSetBinding, set *addonsv1.ClusterResourceSet) {
	b.RemoveBinding(set)
	b.OwnerReferences = slices.DeleteFunc(slices.Clone(b.OwnerReferences), func(r metav1.OwnerReference) bool { return r.UID == set.UID })
}
