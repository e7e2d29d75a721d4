package binding

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// clusterChanges selects the changes of Clusters that decide what is applied to them.
func clusterChanges() predicate.Predicate {
	return predicate.Or(Changes(), watch.Resynced())
}

// Changes selects the changes of Clusters that decide which manifests are applied to them.
func Changes() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Updated(func(before, after *clusterv1.Cluster) bool {
		return !maps.Equal(before.Labels, after.Labels) || Ready(before) != Ready(after) || pausedBy(before) != pausedBy(after) ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
	}))
}

func pausedBy(cluster *clusterv1.Cluster) bool {
	_, annotated := cluster.Annotations[clusterv1.PausedAnnotation]
	return annotated || ptr.Deref(cluster.Spec.Paused, false)
}

// setChanges selects the changes of ClusterResourceSets that decide what is applied.
func setChanges() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Updated(func(before, after *addonsv1.ClusterResourceSet) bool {
		return before.Generation != after.Generation || !slices.Equal(before.Finalizers, after.Finalizers) ||
			!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations)
	}))
}

// OfSet maps a ClusterResourceSet to the Clusters that it selects.
func OfSet(from client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		set, ok := obj.(*addonsv1.ClusterResourceSet)
		if !ok || !set.DeletionTimestamp.IsZero() {
			return nil
		}
		return clustersOf(ctx, from, set)
	}
}

func clustersOf(ctx context.Context, from client.Reader, set *addonsv1.ClusterResourceSet) []reconcile.Request {
	selector, err := Selector(set)
	if err != nil {
		return nil // The condition of the ClusterResourceSet reports it.
	}
	return watch.Requests(ctx, from, &clusterv1.ClusterList{}, client.InNamespace(set.Namespace),
		client.MatchingLabelsSelector{Selector: selector})
}

// OfSets maps an object to the Clusters that its ClusterResourceSets select, which sets returns.
func OfSets(from client.Reader, sets handler.MapFunc) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, request := range sets(ctx, obj) {
			set := &addonsv1.ClusterResourceSet{}
			if from.Get(ctx, request.NamespacedName, set) == nil {
				out = append(out, clustersOf(ctx, from, set)...)
			}
		}
		return out
	}
}

func ofBinding(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

func ofConnection(_ context.Context, cluster types.NamespacedName) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: cluster}}
}
