package topology

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/ssa"
	"sigs.k8s.io/cluster-api/provider/step"
	"sigs.k8s.io/cluster-api/provider/watchfilter"
)

// Options configure the controller.
type Options struct {
	// Concurrency is how many Clusters are reconciled at the same time.
	Concurrency int
	// Filter selects the objects that are this manager's.
	Filter watchfilter.Filter
	// Recent is shared by all controllers of the manager. Nil: every confirmation is a read.
	Recent *step.Recent
	// Extension serves external patches. Nil: classes that have them are errors.
	Extension patches.Extension
	// PoolVersions are the kubelet versions of the Nodes of a MachinePool. Nil: see Planner.
	PoolVersions func(ctx context.Context, cluster *clusterv1.Cluster, pool *clusterv1.MachinePool) ([]string, error)
	// Unattended is what nothing acts on in this manager: conditions say so.
	Unattended check.Unattended
}

// controllerName is the name of the controller in logs, metrics and events.
const controllerName = "topology/cluster"

// Setup adds the controller, and the indexes that it needs, to a manager. The manager's cache must keep managedFields.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	outside := step.From(mgr, controllerName, o.Filter)
	outside.Recent = o.Recent
	c := newController(outside, mgr.GetCache(), NewClasses(o.Extension))
	c.Planner.PoolVersions, c.Planner.Unattended = o.PoolVersions, o.Unattended
	toCluster := handler.EnqueueRequestsFromMapFunc(clusterOf)
	built, err := ctrl.NewControllerManagedBy(mgr).Named(controllerName).
		For(&clusterv1.Cluster{}, builder.WithPredicates(clusterMatters(), hasTopology(), o.Filter.Predicate())).
		Watches(&clusterv1.ClusterClass{}, handler.EnqueueRequestsFromMapFunc(ofClass(mgr.GetCache())), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&clusterv1.MachineDeployment{}, toCluster, builder.WithPredicates(owned(), matters())).
		Watches(&clusterv1.MachinePool{}, toCluster, builder.WithPredicates(owned(), matters())).
		Watches(&clusterv1.MachineHealthCheck{}, toCluster, builder.WithPredicates(owned(), matters())).
		Watches(&clusterv1.Machine{}, toCluster, builder.WithPredicates(owned(), watchfilter.Deleted())).
		WithOptions(step.Options(o.Concurrency)).
		Build(c.runner())
	if err != nil {
		return fmt.Errorf("setting up the topology controller: %w", err)
	}
	watcher := external.NewWatcher(built, mgr.GetCache())
	h := handler.EnqueueRequestsFromMapFunc(byOwner(mgr.GetCache()))
	c.Watch = func(ctx context.Context, kinds []*unstructured.Unstructured) error {
		for _, kind := range kinds {
			if err := watcher.Watch(ctx, kind.GroupVersionKind(), h, matters()); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// runner runs c. Ready is computed by the controller that owns what feeds it.
func (c *Controller) runner() *step.Runner[*clusterv1.Cluster] {
	return &step.Runner[*clusterv1.Cluster]{
		Outside: c.Outside,
		New:     func() *clusterv1.Cluster { return &clusterv1.Cluster{} },
		Paused:  func(_ context.Context, cluster *clusterv1.Cluster) (bool, error) { return cluster.Spec.Paused, nil },
		Do:      c.Reconcile,
	}
}

// newController wires a Controller that reads from a cache and applies through a client.
func newController(outside step.Outside, cached client.Reader, classes *Classes) *Controller {
	schemas := ssa.NewSchemas(ssa.Cluster{Metadata: cached, Live: outside.Live})
	applier := ssa.NewApplier(outside.Client, schemas, FieldManager)
	return &Controller{
		Outside: outside, Cache: cached, Applier: applier,
		Planner: &Planner{
			Reader:   cached,
			External: external.Reader{Client: cached, Versions: contract.APIVersions{Reader: cached}},
			Compare:  applier, Classes: classes, Of: indexed,
		},
		Watch: func(context.Context, []*unstructured.Unstructured) error { return nil },
	}
}
