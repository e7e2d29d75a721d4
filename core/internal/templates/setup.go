package templates

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/wake"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/step"
	"sigs.k8s.io/cluster-api/provider/watchfilter"
)

// Options configure the controllers.
type Options struct {
	// Concurrency is how many objects of each kind are reconciled at the same time.
	Concurrency int
	// Filter selects the objects that are this manager's.
	Filter watchfilter.Filter
}

// The names of the controllers in logs and metrics.
const (
	machineDeploymentController = "topology/machinedeployment"
	machineSetController        = "topology/machineset"
)

// Setup adds the two controllers to a manager.
func Setup(_ context.Context, mgr ctrl.Manager, o Options) error {
	cached := mgr.GetCache()
	versions := contract.APIVersions{Reader: cached}
	cleaner := Cleaner{
		External:     external.Reader{Client: cached, Versions: versions},
		LiveExternal: external.Reader{Client: mgr.GetAPIReader(), Versions: versions},
	}
	deployments := cleaner
	deployments.Outside = step.From(mgr, machineDeploymentController, o.Filter)
	if err := add(mgr, machineDeploymentController, o, func() client.ObjectList { return &clusterv1.MachineDeploymentList{} }, &step.Runner[*clusterv1.MachineDeployment]{
		Outside: deployments.Outside,
		New:     func() *clusterv1.MachineDeployment { return &clusterv1.MachineDeployment{} },
		Paused:  ownership.PausedByCluster[*clusterv1.MachineDeployment](cached),
		Do:      deployments.MachineDeployment,
	}); err != nil {
		return err
	}
	sets := cleaner
	sets.Outside = step.From(mgr, machineSetController, o.Filter)
	return add(mgr, machineSetController, o, func() client.ObjectList { return &clusterv1.MachineSetList{} }, &step.Runner[*clusterv1.MachineSet]{
		Outside: sets.Outside,
		New:     func() *clusterv1.MachineSet { return &clusterv1.MachineSet{} },
		Paused:  ownership.PausedByCluster[*clusterv1.MachineSet](cached),
		Do:      sets.MachineSet,
	})
}

func add[T step.Object](mgr ctrl.Manager, name string, o Options, list func() client.ObjectList, runner *step.Runner[T]) error {
	err := ctrl.NewControllerManagedBy(mgr).Named(name).
		For(runner.New(), builder.WithPredicates(owned(), finalizerMatters(), o.Filter.Predicate())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster(mgr.GetCache(), list)), builder.WithPredicates(unpaused())).
		WithOptions(step.Options(o.Concurrency)).
		Complete(runner)
	if err != nil {
		return fmt.Errorf("setting up the controller %s: %w", name, err)
	}
	return nil
}

func owned() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		_, ok := o.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]
		return ok
	})
}

// finalizerMatters lets updates through when an object starts to be deleted or loses a finalizer or its pause.
func finalizerMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			len(e.ObjectNew.GetFinalizers()) < len(e.ObjectOld.GetFinalizers()) ||
			len(e.ObjectNew.GetLabels()) != len(e.ObjectOld.GetLabels()) ||
			len(e.ObjectNew.GetAnnotations()) != len(e.ObjectOld.GetAnnotations())
	}}
}

// unpaused lets a Cluster through when its pause ends.
func unpaused() predicate.Predicate {
	return watchfilter.Updated(func(before, after *clusterv1.Cluster) bool {
		return before.Spec.Paused && !after.Spec.Paused && after.Spec.Topology != nil
	})
}

// ofCluster maps a Cluster to the objects of its topology that are of one kind.
func ofCluster(reader client.Reader, list func() client.ObjectList) handler.MapFunc {
	return func(ctx context.Context, cluster client.Object) []reconcile.Request {
		return wake.All(ctx, reader, list(), client.InNamespace(cluster.GetNamespace()), client.MatchingLabels{
			clusterv1.ClusterNameLabel: cluster.GetName(), clusterv1.ClusterTopologyOwnedLabel: "",
		})
	}
}
