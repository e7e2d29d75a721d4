package restored

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Clusters connects to workload clusters.
	Clusters *remote.Clusters
}

// Controller resumes restored Clusters.
type Controller struct {
	step.Clients
	// nodes lists the Nodes of a workload cluster, or returns why it cannot.
	nodes func(ctx context.Context, cluster types.NamespacedName) ([]corev1.Node, error)
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Clients: step.ClientsOf(mgr, "restored-cluster-controller", o.Filter), nodes: nodesOf(o.Clusters)}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = append(declared.Watches, step.From(o.Clusters.Source(remote.Events{Connection: itself})))
	_, err := declared.Add(ctx, mgr, c.Clients)
	return err
}

func (c *Controller) declared() step.Controller[*clusterv1.Cluster, *clusterv1.Cluster] {
	return step.Controller[*clusterv1.Cluster, *clusterv1.Cluster]{
		Name:    "restored-cluster",
		New:     func() *clusterv1.Cluster { return &clusterv1.Cluster{} },
		Selects: isMarked,
		Events:  predicate.NewPredicateFuncs(marked),
		Scope:   func(_ context.Context, cluster *clusterv1.Cluster) (*clusterv1.Cluster, error) { return cluster, nil },
		Steps: []step.Step[*clusterv1.Cluster]{
			step.Do("confirmed", c.confirmed),
			step.Do("compare", c.compare),
		},
	}
}

func marked(o client.Object) bool {
	_, found := o.GetAnnotations()[clusterv1.PausedByRestoreAnnotation]
	return found
}

func isMarked(cluster *clusterv1.Cluster) bool { return marked(cluster) }

// nodesOf lists Nodes from the caches of connections.
func nodesOf(clusters *remote.Clusters) func(context.Context, types.NamespacedName) ([]corev1.Node, error) {
	return func(ctx context.Context, key types.NamespacedName) ([]corev1.Node, error) {
		workload, err := clusters.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		list := &corev1.NodeList{}
		err = workload.List(ctx, list)
		return list.Items, err
	}
}

// itself maps a Cluster whose connection changed to itself.
func itself(_ context.Context, cluster types.NamespacedName) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: cluster}}
}
