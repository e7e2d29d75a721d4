package classes

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// classIndex is the index of Clusters by the namespace and name of their class, which may be in another namespace.
const classIndex = "spec.topology.classRef"

// Index adds the index that Clusters requires. It must be called once per cache, before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &clusterv1.Cluster{}, classIndex, ClassOf); err != nil {
		return fmt.Errorf("indexing Clusters by class: %w", err)
	}
	return nil
}

// IndexName returns the name of the index, for builders of fake clients, which require it together with ClassOf.
func IndexName() string { return classIndex }

// ClassOf returns the namespace and name of a Cluster's class, as <namespace>/<name>. It is an index function.
func ClassOf(obj client.Object) []string {
	cluster, ok := obj.(*clusterv1.Cluster)
	if !ok || !cluster.Spec.Topology.IsDefined() || cluster.Spec.Topology.ClassRef.Name == "" {
		return nil
	}
	return []string{cluster.GetClassKey().String()}
}

// Of selects the Clusters of all namespaces that use a class, from a cache that is indexed with Index.
func Of(class client.ObjectKey) []client.ListOption {
	return []client.ListOption{client.MatchingFields{classIndex: class.String()}}
}

// Clusters returns the Clusters of all namespaces that use a class. The reader must be indexed with Index.
func Clusters(ctx context.Context, reader client.Reader, class client.ObjectKey) ([]clusterv1.Cluster, error) {
	list := &clusterv1.ClusterList{}
	err := reader.List(ctx, list, Of(class)...)
	if err != nil {
		return nil, fmt.Errorf("listing the Clusters of ClusterClass %s: %w", class, err)
	}
	return list.Items, nil
}
