package templates

import (
	"context"
	"maps"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controllers.
type Options struct {
	// Concurrency is how many objects of each kind are reconciled at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
}

// Names of the controllers in logs and metrics.
const (
	machineDeploymentController = "topology/machinedeployment"
	machineSetController        = "topology/machineset"
)

// Setup adds the two controllers to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	cached := mgr.GetCache()
	versions := contract.APIVersions{Reader: cached}
	cleaner := Cleaner{
		External:     external.Reader{Client: cached, Versions: versions},
		LiveExternal: external.Reader{Client: mgr.GetAPIReader(), Versions: versions},
	}
	deployments := cleaner
	deployments.Clients = step.ClientsOf(mgr, machineDeploymentController, o.Filter)
	err := add(ctx, mgr, o, deployments.Clients, step.Controller[*clusterv1.MachineDeployment, *clusterv1.MachineDeployment]{
		Name:     machineDeploymentController,
		New:      func() *clusterv1.MachineDeployment { return &clusterv1.MachineDeployment{} },
		Watches:  []step.Watch{step.Mapped(&clusterv1.Cluster{}, ofCluster(cached, &clusterv1.MachineDeploymentList{}), unpaused())},
		Steps:    []step.Step[*clusterv1.MachineDeployment]{step.Do("finalizer", deployments.MachineDeployment)},
		Deletion: []step.Step[*clusterv1.MachineDeployment]{step.Do("clean", deployments.MachineDeployment)},
	})
	if err != nil {
		return err
	}
	sets := cleaner
	sets.Clients = step.ClientsOf(mgr, machineSetController, o.Filter)
	return add(ctx, mgr, o, sets.Clients, step.Controller[*clusterv1.MachineSet, *clusterv1.MachineSet]{
		Name:     machineSetController,
		New:      func() *clusterv1.MachineSet { return &clusterv1.MachineSet{} },
		Watches:  []step.Watch{step.Mapped(&clusterv1.Cluster{}, ofCluster(cached, &clusterv1.MachineSetList{}), unpaused())},
		Steps:    []step.Step[*clusterv1.MachineSet]{step.Do("finalizer", sets.MachineSet)},
		Deletion: []step.Step[*clusterv1.MachineSet]{step.Do("clean", sets.MachineSet)},
	})
}

// add adds a controller with the settings that both have in common.
func add[T step.Object](ctx context.Context, mgr ctrl.Manager, o Options, clients step.Clients, c step.Controller[T, T]) error {
	c.Concurrency = o.Concurrency
	c.Events = predicate.And(owned(), deletionChanges())
	c.Paused = ownership.PausedByCluster[T](mgr.GetCache())
	c.Scope = step.Self[T]
	return step.Add(ctx, mgr, clients, c)
}

func owned() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		_, ok := o.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]
		return ok
	})
}

// deletionChanges selects updates of objects that are being deleted, lost a finalizer, got other labels, or are no longer
// paused.
func deletionChanges() predicate.Predicate {
	paused := func(o client.Object) bool {
		_, paused := o.GetAnnotations()[clusterv1.PausedAnnotation]
		return paused
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			len(e.ObjectNew.GetFinalizers()) < len(e.ObjectOld.GetFinalizers()) ||
			!maps.Equal(e.ObjectNew.GetLabels(), e.ObjectOld.GetLabels()) ||
			paused(e.ObjectOld) && !paused(e.ObjectNew)
	}}
}

// unpaused selects Clusters of a topology that are no longer paused.
func unpaused() predicate.Predicate {
	return watch.Updated(func(before, after *clusterv1.Cluster) bool {
		return ptr.Deref(before.Spec.Paused, false) && !ptr.Deref(after.Spec.Paused, false) && after.Spec.Topology.IsDefined()
	})
}

// ofCluster maps a Cluster to the objects of its topology of one kind; empty is a list of that kind.
func ofCluster(reader client.Reader, empty client.ObjectList) handler.MapFunc {
	return func(ctx context.Context, cluster client.Object) []reconcile.Request {
		list, _ := empty.DeepCopyObject().(client.ObjectList) // a copy of a list is a list
		return watch.Requests(ctx, reader, list, client.InNamespace(cluster.GetNamespace()), client.MatchingLabels{
			clusterv1.ClusterNameLabel: cluster.GetName(), clusterv1.ClusterTopologyOwnedLabel: "",
		})
	}
}
