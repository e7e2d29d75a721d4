package topology

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/classes"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	// Concurrency is how many Clusters are reconciled at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Recent is shared by all controllers of the manager. If it is nil, every confirmation is a read.
	Recent *step.Recent
	// Extension serves external patches. If it is nil, classes with external patches are errors.
	Extension patches.Extension
	// Lifecycle calls the extensions of lifecycle hooks. If it is nil, there are none.
	Lifecycle Caller
	// Upgrades asks extensions for the versions of upgrades. If it is nil, classes with such an extension cannot upgrade Clusters.
	Upgrades plan.UpgradePlans
	// Elsewhere has the ClusterClasses of namespaces that the manager does not watch; nil if it watches all.
	Elsewhere *classes.Elsewhere
	// Clusters connects to workload clusters, for the versions of the Nodes of MachinePools. It must cache Nodes. If it is nil, a
	// MachinePool counts as upgraded as soon as its spec is.
	Clusters *remote.Clusters
}

// controllerName is used in logs, metrics and events.
const controllerName = "topology/cluster"

// Setup adds the controller to a manager. The manager's cache must keep managedFields and have the index of package classes.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	clients := step.ClientsOf(mgr, controllerName, o.Filter)
	clients.Recent = o.Recent
	c := newController(clients, o.Elsewhere.Over(mgr.GetCache(), mgr.GetCache()), plan.NewClasses(o.Extension))
	c.Planner.Upgrades = o.Upgrades
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	if o.Lifecycle != nil {
		c.useHooks(o.Lifecycle)
	}
	if o.Lifecycle != nil || o.Extension != nil {
		declared.Watches = append(declared.Watches, step.Mapped(&runtimev1.ExtensionConfig{}, c.ofExtension, extension.Changes()))
	}
	if o.Clusters != nil {
		c.Planner.PoolVersions = plan.NodeVersions(func(ctx context.Context, key types.NamespacedName) (client.Reader, error) {
			return o.Clusters.Get(ctx, key)
		})
		declared.Watches = append(declared.Watches, step.From(o.Clusters.Source(workloadEvents(mgr.GetCache()))))
	}
	built, err := declared.Add(ctx, mgr, clients)
	if err != nil {
		return err
	}
	watcher := external.NewWatcher(built, mgr.GetCache())
	h := handler.EnqueueRequestsFromMapFunc(byOwner(mgr.GetCache()))
	var elsewhere *external.Watcher
	if o.Elsewhere != nil {
		elsewhere = external.NewWatcher(built, o.Elsewhere.Informers())
		c.WatchClass = func(ctx context.Context, class client.ObjectKey) error {
			if !o.Elsewhere.Has(class) {
				return nil
			}
			return o.Elsewhere.Watch(ctx, built.Watch, handler.EnqueueRequestsFromMapFunc(ofClass(mgr.GetCache())))
		}
	}
	c.Watch = func(ctx context.Context, kinds []*unstructured.Unstructured) error {
		for _, kind := range kinds {
			if o.Elsewhere.Has(client.ObjectKeyFromObject(kind)) {
				if err := elsewhere.Watch(ctx, kind.GroupVersionKind(), h, relevantObject()); err != nil {
					return err
				}
			}
			if err := watcher.Watch(ctx, kind.GroupVersionKind(), h, relevantObject()); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// useHooks makes the controller call lifecycle hooks.
func (c *Controller) useHooks(caller Caller) {
	c.hooks = newLifecycleHooks(caller, c.Clock)
	c.Planner.Hooks = c.hooks
}

// declared returns the controller's declaration. It does not compute the condition Ready of Clusters: the Cluster controller
// does.
func (c *Controller) declared() step.Controller[*clusterv1.Cluster, *scope] {
	return step.Controller[*clusterv1.Cluster, *scope]{
		Name:   controllerName,
		New:    func() *clusterv1.Cluster { return &clusterv1.Cluster{} },
		Events: predicate.And(relevantCluster(), hasTopology()),
		Watches: []step.Watch{
			step.Mapped(&clusterv1.ClusterClass{}, ofClass(c.Cache)),
			step.Mapped(&clusterv1.MachineDeployment{}, clusterOf, owned(), relevantObject()),
			step.Mapped(&clusterv1.MachinePool{}, clusterOf, owned(), predicate.Or(relevantObject(), nodesChanged())),
			step.Mapped(&clusterv1.MachineHealthCheck{}, clusterOf, owned(), relevantObject()),
			step.Mapped(&clusterv1.Machine{}, clusterOf, owned(), watch.Deleted()),
		},
		Paused: func(_ context.Context, cluster *clusterv1.Cluster) (bool, error) {
			return ptr.Deref(cluster.Spec.Paused, false), nil
		},
		Scope: func(_ context.Context, cluster *clusterv1.Cluster) (*scope, error) {
			return &scope{cluster: cluster}, nil
		},
		Steps: []step.Step[*scope]{
			step.When((*scope).hasTopology,
				step.Do("plan", c.plan),
				step.Do("confirm", c.confirm),
				step.Do("reference", c.reference),
				step.Do("apply", c.apply),
				step.Do("leftovers", c.leftovers),
				step.Do("prune", c.prune),
				step.Do("after-hooks", c.afterHooks),
			),
		},
		Deletion: []step.Step[*scope]{
			step.When((*scope).hasTopology,
				step.Do("before-delete", c.beforeDelete).Sets(clusterv1.TopologyReconciledV1Beta1Condition),
				step.Do("deleted", c.deleted).Sets(clusterv1.TopologyReconciledV1Beta1Condition),
			),
		},
		Conclude: c.conclude,
		Settle:   step.Settle{For: time.Second, Conditions: []string{clusterv1.ClusterTopologyReconciledCondition}},
	}
}

// newController returns a Controller that reads from a cache and applies through outside.Client.
func newController(clients step.Clients, cached client.Reader, compiled *plan.Classes) *Controller {
	schemas := ssa.NewSchemas(cached, clients.Live)
	applier := ssa.NewApplier(clients.Client, schemas, plan.FieldManager)
	return &Controller{
		Clients: clients, Cache: cached, Applier: applier,
		Planner: &plan.Planner{
			Reader:   cached,
			External: external.Reader{Client: cached, Versions: contract.APIVersions{Reader: cached}},
			Compare:  applier, Classes: compiled,
		},
		Watch:        func(context.Context, []*unstructured.Unstructured) error { return nil },
		WatchClass:   func(context.Context, client.ObjectKey) error { return nil },
		concurrently: concurrently,
	}
}
