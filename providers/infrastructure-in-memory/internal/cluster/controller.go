package cluster

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
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
	// Kinds are the kinds of the objects.
	Kinds kinds.Set
}

// Controller reconciles the clusters of a set of kinds.
type Controller struct {
	step.Clients
	kinds kinds.Set
	lab   *lab.Lab
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Clients: step.ClientsOf(mgr, o.Kinds.ClusterController()+"-controller", o.Filter), kinds: o.Kinds, lab: o.Lab}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Clients, declared)
}

// declared returns the declaration of the controller. It ignores externally managed objects.
func (c *Controller) declared() step.Controller[step.Object, kinds.Cluster] {
	ours := func(obj kinds.Cluster) bool { return !ownership.ManagedExternally(obj.Object) }
	return step.Controller[step.Object, kinds.Cluster]{
		Name:    c.kinds.ClusterController(),
		New:     c.kinds.NewCluster,
		Selects: c.kinds.IsCluster,
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Cluster{}, watch.Infrastructure(c.kinds.ClusterKind), ofClusters()),
			step.Handled(c.kinds.NewCluster(), handler.Funcs{DeleteFunc: c.gone}),
		},
		Paused: c.paused,
		Scope:  c.scope,
		Steps: []step.Step[kinds.Cluster]{
			step.When(ours, step.Do("open", c.open).Sets(clusterv1.ReadyV1Beta1Condition)),
			step.When(ours, step.Do("host", c.host)),
		},
		Deletion: []step.Step[kinds.Cluster]{
			step.When(ours, step.Do("close", c.close)),
		},
	}
}

// paused reports whether an object is not reconciled because its Cluster is paused. What runs goes on: a cluster that was ready is opened
// again after a restart.
func (c *Controller) paused(ctx context.Context, obj step.Object) (bool, error) {
	paused, err := ownership.PausedByCluster[step.Object](c.Client)(ctx, obj)
	if err != nil || !paused || !obj.GetDeletionTimestamp().IsZero() {
		return paused, err
	}
	of, err := c.scope(ctx, obj)
	if err != nil {
		return true, err
	}
	cluster, err := ownership.ClusterOf(ctx, c.Client, obj)
	if err != nil || cluster == nil || !of.Ready() {
		return true, err
	}
	_, open := c.lab.Server.Endpoint(client.ObjectKeyFromObject(cluster))
	return open, nil
}

// scope returns what an object has.
func (c *Controller) scope(_ context.Context, obj step.Object) (kinds.Cluster, error) {
	return c.kinds.Cluster(obj)
}
