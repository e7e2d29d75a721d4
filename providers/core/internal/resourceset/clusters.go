package resourceset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/binding"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// clusters lists the selected Clusters of this manager that are ready, with their bindings, and deletes bindings whose Cluster no longer
// exists. Usually, the controller of bindings has deleted these before.
func (c *Controller) clusters(ctx context.Context, s *scope) (step.Result, error) {
	if _, s.invalid = binding.Selector(s.set); s.invalid != nil {
		return step.Done(), nil
	}
	list, bindings := &clusterv1.ClusterList{}, &addonsv1.ClusterResourceSetBindingList{}
	in := client.InNamespace(s.set.Namespace)
	if err := errors.Join(c.Client.List(ctx, list, in), c.Client.List(ctx, bindings, in)); err != nil {
		return step.Done(), fmt.Errorf("listing Clusters and bindings: %w", err)
	}
	byName := map[string]*addonsv1.ClusterResourceSetBinding{}
	for i := range bindings.Items {
		byName[bindings.Items[i].Name] = &bindings.Items[i]
	}
	exists := map[string]bool{}
	for i := range list.Items {
		cluster := &list.Items[i]
		exists[cluster.Name] = true
		_, paused := cluster.Annotations[clusterv1.PausedAnnotation]
		paused = paused || ptr.Deref(cluster.Spec.Paused, false)
		if c.Filter.Selects(cluster) && binding.Selects(s.set, cluster) && binding.Ready(cluster) && !paused {
			s.targets = append(s.targets, target{cluster: cluster, binding: byName[cluster.Name]})
		}
	}
	slices.SortFunc(s.targets, func(a, b target) int { return cmp.Compare(a.cluster.Name, b.cluster.Name) })
	return step.Done(), c.prune(ctx, s, bindings, exists)
}

// prune deletes the bindings with an entry of the ClusterResourceSet whose Cluster does not exist.
func (c *Controller) prune(ctx context.Context, s *scope, bindings *addonsv1.ClusterResourceSetBindingList, exists map[string]bool) error {
	var errs []error
	for i := range bindings.Items {
		b := &bindings.Items[i]
		if exists[b.Name] || !b.DeletionTimestamp.IsZero() || !involves(b, s.set) {
			continue
		}
		err := c.Live.Get(ctx, client.ObjectKeyFromObject(b), &clusterv1.Cluster{})
		switch {
		case apierrors.IsNotFound(err):
			c.ledger.Forget(client.ObjectKeyFromObject(b))
			errs = append(errs, c.Delete(ctx, b))
		case err != nil:
			errs = append(errs, fmt.Errorf("reading Cluster %s: %w", b.Name, err))
		}
	}
	return errors.Join(errs...)
}

// involves reports whether a binding has an entry of a ClusterResourceSet, or is owned by it.
func involves(b *addonsv1.ClusterResourceSetBinding, set *addonsv1.ClusterResourceSet) bool {
	for _, e := range b.Spec.Bindings {
		if e.ClusterResourceSetName == set.Name {
			return true
		}
	}
	for _, owner := range b.OwnerReferences {
		if owner.UID == set.UID {
			return true
		}
	}
	return false
}
