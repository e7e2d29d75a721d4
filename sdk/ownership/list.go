package ownership

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// InCluster selects the objects of a list that have the name of a Cluster in the label cluster.x-k8s.io/cluster-name. It comes after
// client.MatchingLabelsSelector, which replaces other selectors.
func InCluster(namespace, name string) client.ListOption { return inCluster{namespace, name} }

type inCluster struct{ namespace, name string }

// ApplyToList implements client.ListOption.
func (c inCluster) ApplyToList(o *client.ListOptions) {
	client.InNamespace(c.namespace).ApplyToList(o)
	client.MatchingLabels{clusterv1.ClusterNameLabel: c.name}.ApplyToList(o)
}
