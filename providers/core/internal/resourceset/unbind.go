package resourceset

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/binding"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// unbind removes the entries of the ClusterResourceSet from all bindings in the API server, and deletes bindings without entries.
func (c *Controller) unbind(ctx context.Context, s *scope) (step.Result, error) {
	if !controllerutil.ContainsFinalizer(s.set, addonsv1.ClusterResourceSetFinalizer) {
		return step.Stop(), nil
	}
	list := &addonsv1.ClusterResourceSetBindingList{}
	if err := c.Live.List(ctx, list, client.InNamespace(s.set.Namespace)); err != nil {
		return step.Done(), fmt.Errorf("listing bindings: %w", err)
	}
	var errs []error
	for i := range list.Items {
		b := &list.Items[i]
		if !b.DeletionTimestamp.IsZero() || !involves(b, s.set) {
			continue
		}
		change := b.DeepCopy()
		if binding.Remove(change, s.set); len(change.Spec.Bindings) == 0 {
			errs = append(errs, c.Delete(ctx, b))
			continue
		}
		errs = append(errs, client.IgnoreNotFound(c.Patch(ctx, b, func() { binding.Remove(b, s.set) }, step.IfUnchanged)))
	}
	return step.Done(), errors.Join(errs...)
}
