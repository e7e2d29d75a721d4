package resourceset

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/resourceset/binding"
	"sigs.k8s.io/cluster-api/core/internal/resourceset/content"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/step"
)

// resources makes the ClusterResourceSet an owner of its ConfigMaps and Secrets, so that `clusterctl move` takes them along.
func (c *Controller) resources(ctx context.Context, s *scope) (step.Result, error) {
	var errs []error
	for _, ref := range binding.Resources(s.set) {
		errs = append(errs, c.resource(ctx, s, ref))
	}
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
