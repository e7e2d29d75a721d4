package resourceset

import (
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/content"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/outcome"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Controller reconciles ClusterResourceSets.
type Controller struct {
	step.Clients
	contents *content.Reader
	ledger   *outcome.Ledger
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	set *addonsv1.ClusterResourceSet
	// usable are the ConfigMaps and Secrets that exist; missing and wrong are the messages of those that do not, or have a wrong type.
	usable         []addonsv1.ResourceRef
	missing, wrong []string
	// invalid is why the selector is invalid.
	invalid error
	// targets are the selected Clusters that are ready, sorted by name.
	targets []target
}

// target is a Cluster and its binding, which is nil if it does not exist.
type target struct {
	cluster *clusterv1.Cluster
	binding *addonsv1.ClusterResourceSetBinding
}
