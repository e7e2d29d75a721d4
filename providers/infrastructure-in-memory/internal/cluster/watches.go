package cluster

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/cluster-api/sdk/watch"
)

// ofClusters selects the events of Clusters that an object may wait for.
func ofClusters() predicate.Predicate { return watch.Cluster(watch.Paused, watch.InfrastructureRef) }

// gone shuts down the workload cluster of an object whose finalizer was removed by others: it is no longer reconciled.
func (c *Controller) gone(ctx context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if err := c.lab.Drop(e.Object.GetUID()); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot shut down the workload cluster of a deleted "+c.kinds.ClusterKind,
			c.kinds.ClusterKind, client.ObjectKeyFromObject(e.Object))
	}
}
