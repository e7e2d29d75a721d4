package binding

import (
	"context"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/content"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/outcome"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	// Concurrency is how many Clusters are reconciled at the same time.
	Concurrency int
	// Filter selects the Clusters that are reconciled, and the ClusterResourceSets that are applied to them.
	Filter   watch.Filter
	Clusters *remote.Clusters
	Contents *content.Reader
	Ledger   *outcome.Ledger
	// Watches are additional watches.
	Watches []step.Watch
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{
		Clients:   step.ClientsOf(mgr, "clusterresourcesetbinding-controller", o.Filter),
		workloads: o.Clusters, contents: o.Contents, ledger: o.Ledger,
	}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = append(append(declared.Watches, step.From(o.Clusters.Source(remote.Events{Connection: ofConnection}))), o.Watches...)
	return step.Add(ctx, mgr, c.Clients, declared)
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*clusterv1.Cluster, *scope] {
	return step.Controller[*clusterv1.Cluster, *scope]{
		Name:   "clusterresourcesetbinding",
		New:    func() *clusterv1.Cluster { return &clusterv1.Cluster{} },
		Events: clusterChanges(),
		Watches: []step.Watch{
			step.Mapped(&addonsv1.ClusterResourceSet{}, OfSet(c.Client), setChanges()),
			step.Mapped(&addonsv1.ClusterResourceSetBinding{}, ofBinding, watch.Created(), watch.Deleted()),
		},
		Paused: func(_ context.Context, cluster *clusterv1.Cluster) (bool, error) {
			return ptr.Deref(cluster.Spec.Paused, false), nil
		},
		Scope: c.scope,
		Steps: []step.Step[*scope]{
			step.Do("adopt", c.adopt),
			step.Do("choose", c.choose),
			step.Do("connect", c.connect),
			step.Do("claim", c.claim),
			step.Do("apply", c.apply),
			step.Do("record", c.record),
		},
		Deletion: []step.Step[*scope]{step.Do("release", c.release)},
	}
}
