package operation

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// kind is a kind of operation.
type kind interface {
	client.Object
	Ended() bool
}

// OnCluster returns a watch of Clusters for the operations on them that have not ended: what was refused because of a Cluster is considered
// again at once. clusterOf returns the name of an operation's Cluster, and matters is which changes of it are events.
func OnCluster[T kind, L client.ObjectList](
	c client.Reader, list func() L, clusterOf func(T) string, matters func(before, after *clusterv1.Cluster) bool,
) step.Watch {
	return step.Mapped(&clusterv1.Cluster{}, func(ctx context.Context, obj client.Object) []reconcile.Request {
		return watch.RequestsFor(ctx, c, list(), func(o T) bool {
			return clusterOf(o) == obj.GetName() && (!o.Ended() || !o.GetDeletionTimestamp().IsZero())
		}, client.InNamespace(obj.GetNamespace()))
	}, predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(matters)))
}

// Respecified reports whether what a Cluster is asked to be has changed, such as its pause, or its deletion has begun.
func Respecified(before, after *clusterv1.Cluster) bool {
	return before.Generation != after.Generation || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}

// Changed reports whether anything about a Cluster has changed. Its status counts its Machines.
func Changed(before, after *clusterv1.Cluster) bool {
	return before.ResourceVersion != after.ResourceVersion
}
