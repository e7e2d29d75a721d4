package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// page is how many Clusters are read at once.
const page = 500

// currentCache waits, once for each rollout and process, until the cache shows the entries that are in the API server: another process may
// have changed Clusters just before, and counting fewer than there are in change would be too many soon. What this process writes, it waits
// for itself.
func (c *Controller) currentCache(ctx context.Context, s *scope) (step.Result, error) {
	if _, ok := c.current.Load(s.id()); ok || s.planned() == "" {
		return step.Done(), nil
	}
	known := map[string]string{}
	for _, m := range s.members {
		known[m.cluster.Name] = m.cluster.Annotations[fleetv1.RolloutAnnotation]
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterList"))
	for {
		err := c.Live.List(ctx, list, client.InNamespace(s.rollout.Namespace), client.Limit(page), client.Continue(list.Continue))
		if err != nil {
			return step.Result{}, fmt.Errorf("listing Clusters: %w", ignoreExpired(err))
		}
		for i := range list.Items {
			live := &list.Items[i]
			entry, err := fleetv1.RolloutEntryOf(live)
			if err == nil && s.owns(entry) && known[live.Name] != live.Annotations[fleetv1.RolloutAnnotation] {
				return step.WaitAtMost(step.CacheBackstop, "the cache to show the latest Cluster "+live.Name), nil
			}
		}
		if list.Continue == "" {
			c.current.Store(s.id(), true)
			return step.Done(), nil
		}
	}
}

// ignoreExpired returns an error that says what happens next if a list took too long for the API server to continue it.
func ignoreExpired(err error) error {
	if apierrors.IsResourceExpired(err) {
		return fmt.Errorf("the list is read again from the start: %w", err)
	}
	return err
}
