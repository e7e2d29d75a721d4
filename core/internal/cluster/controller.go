package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/reference"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/provider/step"
	"sigs.k8s.io/cluster-api/provider/watchfilter"
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that are this manager's.
	Filter watchfilter.Filter
	// Recent is shared by all controllers of the manager. Nil: every confirmation is a read.
	Recent *step.Recent
	// Hooks says that runtime hooks decide when a Cluster of a ClusterClass may be deleted.
	Hooks bool
	// Forget is told of Clusters that are gone, so that connections to them are closed.
	Forget func(cluster types.NamespacedName)
}

// Controller reconciles Clusters.
type Controller struct {
	step.Outside
	follow *reference.Follower
	hooks  bool
	forget func(types.NamespacedName)
}

// conditions declares what feeds a Cluster's Ready.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{clusterv1.ControlPlaneReadyCondition, clusterv1.InfrastructureReadyCondition}}
}

// progress: a Cluster whose infrastructure is ready at once is never Provisioning.
func progress() *step.Progress { return &step.Progress{First: []string{"phase"}} }

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	kind := clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind)
	c := &Controller{Outside: step.From(mgr, "cluster-controller", o.Filter), hooks: o.Hooks, forget: o.Forget}
	c.Recent = o.Recent
	if err := mgr.GetFieldIndexer().IndexField(ctx, &clusterv1.Cluster{}, reference.Index, references); err != nil {
		return fmt.Errorf("indexing Clusters by what they refer to: %w", err)
	}
	runner := &step.Runner[*clusterv1.Cluster]{
		Outside:    c.Outside,
		New:        func() *clusterv1.Cluster { return &clusterv1.Cluster{} },
		Conditions: conditions(),
		Paused:     func(_ context.Context, cluster *clusterv1.Cluster) (bool, error) { return cluster.Spec.Paused, nil },
		Do:         c.Reconcile,
		Observed:   func(cluster *clusterv1.Cluster, g int64) { cluster.Status.ObservedGeneration = g },
		Progress:   progress(),
	}
	gone := builder.WithPredicates(watchfilter.Deleted())
	built, err := ctrl.NewControllerManagedBy(mgr).Named("cluster").
		For(&clusterv1.Cluster{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}, predicate.NewPredicateFuncs(isStarted), o.Filter.Predicate())).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(byLabel), builder.WithPredicates(machineMatters())).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(byLabel), gone).
		Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(byLabel), gone).
		Watches(&clusterv1.MachinePool{}, handler.EnqueueRequestsFromMapFunc(byLabel), gone).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(byLabel), builder.WithPredicates(authorityAppears())).
		WithOptions(step.Options(o.Concurrency)).
		Build(runner)
	if err != nil {
		return fmt.Errorf("setting up the cluster controller: %w", err)
	}
	c.follow = &reference.Follower{
		Client:  c.Client,
		Live:    c.Live,
		Reader:  external.Reader{Client: c.Client, Versions: contract.APIVersions{Reader: c.Client}},
		Watcher: external.NewWatcher(built, mgr.GetCache()),
		Kind:    kind, Referrers: &clusterv1.ClusterList{},
	}
	return nil
}

func references(obj client.Object) []string {
	if cluster, ok := obj.(*clusterv1.Cluster); ok {
		return reference.Keys(cluster.Spec.InfrastructureRef, cluster.Spec.ControlPlaneRef)
	}
	return nil
}

// authorityAppears lets certificate authorities through that a kubeconfig may wait for.
func authorityAppears() predicate.Predicate {
	return predicate.And(watchfilter.Created(), predicate.NewPredicateFuncs(func(obj client.Object) bool {
		cluster := obj.GetLabels()[clusterv1.ClusterNameLabel]
		return cluster != "" && obj.GetName() == pki.SecretName(cluster, pki.ClusterCA)
	}))
}

// byLabel maps an object to the Cluster that its label names.
func byLabel(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
}

// machineMatters lets Machines through that are gone, and control plane Machines whose Node just came up.
func machineMatters() predicate.Predicate {
	return predicate.Or(watchfilter.Deleted(), watchfilter.Updated(func(before, after *clusterv1.Machine) bool {
		return isControlPlane(after) && before.Status.NodeRef == nil && after.Status.NodeRef != nil
	}))
}

func isControlPlane(m *clusterv1.Machine) bool {
	_, ok := m.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// Reconcile brings a Cluster's status to what its infrastructure and control plane say, or deletes both.
func (c *Controller) Reconcile(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	before := cluster.Status.GetTypedPhase()
	result, err := c.steps(ctx, cluster)
	if started(cluster) {
		setPhase(ctx, cluster, before)
	}
	return result, err
}

func (c *Controller) steps(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	if !cluster.DeletionTimestamp.IsZero() {
		return step.Run(ctx, cluster, c.released, c.deleteChildren, c.deleteControlPlane, c.deleteInfrastructure, c.finish)
	}
	return step.Run(ctx, cluster, c.finalizer, step.All(c.infrastructure, c.controlPlane, c.initialized, c.kubeconfig))
}

// started is false for a Cluster of a ClusterClass whose objects the topology controller has not made yet.
func started(cluster *clusterv1.Cluster) bool {
	return !cluster.DeletionTimestamp.IsZero() || cluster.Spec.Topology == nil ||
		(cluster.Spec.InfrastructureRef != nil && cluster.Spec.ControlPlaneRef != nil)
}

// isStarted is started for events.
func isStarted(obj client.Object) bool {
	cluster, ok := obj.(*clusterv1.Cluster)
	return ok && started(cluster)
}

func referenceName(ref *corev1.ObjectReference) string { return ref.Kind + " " + ref.Name }
