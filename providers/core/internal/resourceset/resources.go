package resourceset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/binding"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/content"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// resources makes the ClusterResourceSet an owner of its ConfigMaps and Secrets, so that `clusterctl move` takes them along, and of no
// others: those that left the spec must not be deleted with it.
func (c *Controller) resources(ctx context.Context, s *scope) (step.Result, error) {
	var errs []error
	for _, ref := range binding.Resources(s.set) {
		errs = append(errs, c.resource(ctx, s, ref))
	}
	errs = append(errs, c.disown(ctx, s))
	return step.Done(), errors.Join(errs...)
}

func (c *Controller) resource(ctx context.Context, s *scope, ref addonsv1.ResourceRef) error {
	found, err := c.contents.Find(ctx, s.set.Namespace, ref)
	var unavailable *content.UnavailableError
	switch {
	case errors.As(err, &unavailable) && unavailable.WrongType:
		s.wrong = append(s.wrong, unavailable.Error())
		return nil
	case errors.As(err, &unavailable):
		s.missing = append(s.missing, unavailable.Error())
		return nil
	case err != nil:
		return err
	}
	s.usable = append(s.usable, ref)
	found.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: ref.Kind}) // Caches may drop it.
	return c.Patch(ctx, found, func() {
		found.OwnerReferences, _ = ownership.Ensure(found.OwnerReferences, binding.Owner(s.set))
	})
}

// disown removes the ClusterResourceSet from the owners of ConfigMaps and Secrets that left its spec.
func (c *Controller) disown(ctx context.Context, s *scope) error {
	owned, err := c.contents.Owned(ctx, s.set.Namespace, s.set.UID)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(owned, func(m *metav1.PartialObjectMetadata) bool {
		return slices.Contains(binding.Resources(s.set), content.Ref(m))
	})
	if len(left) == 0 {
		return nil
	}
	// The spec in the cache may be an old one, in which they are not yet.
	live := &addonsv1.ClusterResourceSet{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(s.set), live); err != nil {
		return fmt.Errorf("reading the ClusterResourceSet again: %w", err)
	}
	if live.UID != s.set.UID || live.Generation != s.set.Generation {
		return step.Stale("the spec of the ClusterResourceSet has changed")
	}
	var errs []error
	for _, m := range left {
		errs = append(errs, client.IgnoreNotFound(c.Patch(ctx, m, func() {
			m.OwnerReferences = slices.DeleteFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == s.set.UID })
		})))
	}
	return errors.Join(errs...)
}
