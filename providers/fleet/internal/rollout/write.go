package rollout

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rollout/wave"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// entry returns the entry of a Cluster after an action.
func (s *scope) entry(m *member, a wave.Action) *fleetv1.RolloutEntry {
	e := *m.entry
	e.State, e.Message = a.State, condition.Truncate(a.Message, maxReason)
	e.Since, e.Attempt = metav1.NewTime(s.now), attempt(s.rollout)
	return &e
}

// write writes the entry of a Cluster, and a change of its spec, in one request. It returns the Cluster as written; the cached one stays
// as it is. A change of the spec depends on the rest of the Cluster, and fails if that is not as it was read.
func (c *Controller) write(
	ctx context.Context, cached *clusterv1.Cluster, entry *fleetv1.RolloutEntry, change func(*clusterv1.Cluster),
) (*clusterv1.Cluster, error) {
	cluster := cached.DeepCopy()
	var options []step.WriteOption
	if change != nil {
		options = append(options, step.IfUnchanged)
	}
	var failed error
	err := c.Patch(ctx, cluster, func() {
		if change != nil {
			change(cluster)
		}
		failed = fleetv1.SetRolloutEntry(cluster, entry)
	}, options...)
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("writing Cluster %s: %w", cached.Name, err)
	}
	return cluster, nil
}

// await waits until the cache shows Clusters that were written. If it does not soon, the next reconcile compares it with the API server.
func (c *Controller) await(ctx context.Context, s *scope, written []client.Object) {
	c.AwaitVisible(ctx, written...)
	for _, obj := range written {
		cached := &clusterv1.Cluster{}
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(obj), cached)
		if err != nil || cached.Annotations[fleetv1.RolloutAnnotation] != obj.GetAnnotations()[fleetv1.RolloutAnnotation] {
			c.current.Delete(s.id())
			return
		}
	}
}
