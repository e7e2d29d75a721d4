package cluster

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects of this manager.
	Filter watch.Filter
	Lab    *lab.Lab
}

// Controller reconciles InMemoryClusters.
type Controller struct {
	step.Clients
	lab *lab.Lab
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Clients: step.ClientsOf(mgr, "inmemorycluster-controller", o.Filter), lab: o.Lab}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Clients, declared)
}

// declared returns the declaration of the controller. It ignores externally managed InMemoryClusters.
func (c *Controller) declared() step.Controller[*inmemoryv1.InMemoryCluster, *inmemoryv1.InMemoryCluster] {
	ours := func(obj *inmemoryv1.InMemoryCluster) bool { return !ownership.ManagedExternally(obj) }
	return step.Controller[*inmemoryv1.InMemoryCluster, *inmemoryv1.InMemoryCluster]{
		Name: "inmemorycluster",
		New:  func() *inmemoryv1.InMemoryCluster { return &inmemoryv1.InMemoryCluster{} },
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Cluster{}, watch.Infrastructure("InMemoryCluster"), ofClusters()),
			step.Handled(&inmemoryv1.InMemoryCluster{}, handler.Funcs{DeleteFunc: c.gone}),
		},
		Paused: ownership.PausedByCluster[*inmemoryv1.InMemoryCluster](c.Client),
		Scope:  step.Self[*inmemoryv1.InMemoryCluster],
		Steps: []step.Step[*inmemoryv1.InMemoryCluster]{
			step.When(ours, step.Do("open", c.open).Sets(clusterv1.ReadyV1Beta1Condition)),
			step.When(ours, step.Do("host", c.host)),
		},
		Deletion: []step.Step[*inmemoryv1.InMemoryCluster]{
			step.When(ours, step.Do("close", c.close)),
		},
	}
}
