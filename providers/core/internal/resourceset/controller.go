package resourceset

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/binding"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/content"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/outcome"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// summaryDelay is how long the condition of a ClusterResourceSet may lag behind changes of Clusters and bindings: only users read it,
// and a thousand Clusters that change at the same time must not be a thousand summaries of a thousand Clusters.
const summaryDelay = 500 * time.Millisecond

// Options configure the controllers.
type Options struct {
	// Concurrency is how many ClusterResourceSets, and how many Clusters, are reconciled at the same time.
	Concurrency int
	// Filter selects the ClusterResourceSets and Clusters that this manager reconciles.
	Filter watch.Filter
	// Namespace is the only namespace to watch. Empty: all.
	Namespace string
	// Clusters connects to workload clusters.
	Clusters *remote.Clusters
}

// Setup adds the controllers of ClusterResourceSets and of their bindings to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	metadata, err := metadataCache(mgr, o.Namespace)
	if err != nil {
		return err
	}
	c := &Controller{
		Clients:  step.ClientsOf(mgr, "clusterresourceset-controller", o.Filter),
		contents: content.NewReader(metadata, mgr.GetAPIReader()), ledger: outcome.NewLedger(),
	}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = append(declared.Watches, held(metadata, c.ofHeld)...)
	if err := step.Add(ctx, mgr, c.Clients, declared); err != nil {
		return err
	}
	return binding.Setup(ctx, mgr, binding.Options{
		Concurrency: o.Concurrency, Filter: o.Filter, Clusters: o.Clusters, Contents: c.contents, Ledger: c.ledger,
		Watches: held(metadata, binding.OfSets(c.Client, c.ofHeld)),
	})
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*addonsv1.ClusterResourceSet, *scope] {
	return step.Controller[*addonsv1.ClusterResourceSet, *scope]{
		Name: "clusterresourceset",
		New:  func() *addonsv1.ClusterResourceSet { return &addonsv1.ClusterResourceSet{} },
		Watches: []step.Watch{
			step.Handled(&clusterv1.Cluster{}, later(c.ofCluster), clusterChanges()),
			step.Handled(&addonsv1.ClusterResourceSetBinding{}, later(ofBinding)),
			step.From(c.ledger.Source(summaryDelay)),
		},
		Indexes: []step.Index{{Object: &addonsv1.ClusterResourceSet{}, Field: byResource, Values: resourceKeys}},
		Scope: func(_ context.Context, set *addonsv1.ClusterResourceSet) (*scope, error) {
			return &scope{set: set}, nil
		},
		Steps: []step.Step[*scope]{
			step.Do("adopt", adopt),
			step.Do("resources", c.resources),
			step.Do("clusters", c.clusters),
			step.Do("report", c.report).Sets(addonsv1.ResourcesAppliedV1Beta1Condition),
		},
		Deletion: []step.Step[*scope]{
			step.Do("unbind", c.unbind),
			step.Do("release", release),
		},
		Reports:  reports,
		Observed: func(set *addonsv1.ClusterResourceSet, g int64) { set.Status.ObservedGeneration = g },
	}
}
