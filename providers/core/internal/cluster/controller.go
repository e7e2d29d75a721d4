package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Recent is shared by all controllers of the manager. If nil, every confirmation reads from the API server.
	Recent *step.Recent
	// LifecycleHooks is set if runtime extensions are called. Then the deletion of a Cluster with a topology begins when they have
	// allowed it.
	LifecycleHooks bool
	// Forget is called for Clusters that have been deleted, to close the connections to them.
	Forget func(cluster types.NamespacedName)
}

// Controller reconciles Clusters.
type Controller struct {
	step.Outside
	follow *reference.Follower
	forget func(types.NamespacedName)
	hooks  bool
}

// conditions declares the conditions that a Cluster's Ready summarizes.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{clusterv1.ControlPlaneReadyCondition, clusterv1.InfrastructureReadyCondition}}
}

// progress delays the first write of the phase: a Cluster whose infrastructure is ready at once is never Provisioning.
func progress() *step.Progress { return &step.Progress{First: []string{"phase"}} }

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	kind := clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind)
	c := &Controller{Outside: step.OutsideOf(mgr, "cluster-controller", o.Filter), forget: o.Forget, hooks: o.LifecycleHooks}
	c.Recent = o.Recent
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = []step.Watch{
		step.Mapped(&clusterv1.Machine{}, byLabel, machineChanges()),
		step.Mapped(&clusterv1.MachineDeployment{}, byLabel, watch.Deleted()),
		step.Mapped(&clusterv1.MachineSet{}, byLabel, watch.Deleted()),
		step.Mapped(&clusterv1.MachinePool{}, byLabel, watch.Deleted()),
		step.Mapped(&corev1.Secret{}, byLabel, caCreated()),
	}
	built, err := declared.Add(ctx, mgr, c.Outside)
	if err != nil {
		return err
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

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*clusterv1.Cluster, *scope] {
	return step.Controller[*clusterv1.Cluster, *scope]{
		Name:    "cluster",
		New:     func() *clusterv1.Cluster { return &clusterv1.Cluster{} },
		Events:  predicate.NewPredicateFuncs(isStarted),
		Indexes: []step.Index{{Object: &clusterv1.Cluster{}, Field: reference.Index, Values: references}},
		Paused:  func(_ context.Context, cluster *clusterv1.Cluster) (bool, error) { return cluster.Spec.Paused, nil },
		Scope: func(_ context.Context, cluster *clusterv1.Cluster) (*scope, error) {
			return &scope{Cluster: cluster, before: cluster.Status.GetTypedPhase()}, nil
		},
		Steps: []step.Step[*scope]{
			step.Do("finalizer", c.finalizer),
			step.All(
				step.Do("infrastructure", c.infrastructure).Sets(clusterv1.InfrastructureReadyCondition),
				step.Do("control-plane", c.controlPlane).Sets(clusterv1.ControlPlaneReadyCondition),
				step.Do("initialized", c.initialized).Sets(clusterv1.ControlPlaneInitializedCondition),
				step.Do("kubeconfig", c.kubeconfig),
			),
		},
		Deletion: []step.Step[*scope]{
			step.Do("held", c.held),
			step.Do("delete-children", c.deleteChildren),
			step.Do("delete-control-plane", c.deleteControlPlane),
			step.Do("delete-infrastructure", c.deleteInfrastructure),
			step.Do("finish", c.finish),
		},
		Report:     []step.Step[*scope]{step.Do("phase", phase)},
		Conditions: conditions(),
		Observed:   func(cluster *clusterv1.Cluster, g int64) { cluster.Status.ObservedGeneration = g },
		Progress:   progress(),
	}
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	*clusterv1.Cluster
	// before is the phase at the start of the reconcile.
	before clusterv1.ClusterPhase
	// controlPlane is the object that the Cluster refers to; nil if it does not exist.
	controlPlane *contract.ControlPlane
}

// adopt returns the object of a reference, nil if it does not exist. It makes the Cluster the object's controller, and copies a
// terminal failure to the Cluster.
func (c *Controller) adopt(ctx context.Context, cluster *clusterv1.Cluster, ref *corev1.ObjectReference) (*unstructured.Unstructured, error) {
	obj, err := c.follow.Follow(ctx, ref, cluster.Namespace)
	if err != nil || obj == nil {
		return nil, err
	}
	if err := c.follow.Own(ctx, obj, cluster, cluster.Name); err != nil {
		return nil, err
	}
	return obj, reference.CopyFailure(contract.ObjectOf(obj), &cluster.Status.FailureReason, &cluster.Status.FailureMessage)
}

func references(obj client.Object) []string {
	if cluster, ok := obj.(*clusterv1.Cluster); ok {
		return reference.Keys(cluster.Spec.InfrastructureRef, cluster.Spec.ControlPlaneRef)
	}
	return nil
}

// caCreated selects the creation of cluster CA Secrets, which the kubeconfig step may wait for.
func caCreated() predicate.Predicate {
	return predicate.And(watch.Created(), predicate.NewPredicateFuncs(func(obj client.Object) bool {
		cluster := obj.GetLabels()[clusterv1.ClusterNameLabel]
		return cluster != "" && obj.GetName() == pki.SecretName(cluster, pki.ClusterCA)
	}))
}

// byLabel maps an object to the Cluster of its cluster name label.
func byLabel(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
}

// machineChanges selects Machines that were deleted, and control plane Machines that just got their Node.
func machineChanges() predicate.Predicate {
	return predicate.Or(watch.Deleted(), watch.Updated(func(before, after *clusterv1.Machine) bool {
		return isControlPlane(after) && before.Status.NodeRef == nil && after.Status.NodeRef != nil
	}))
}

func isControlPlane(m *clusterv1.Machine) bool {
	_, ok := m.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// started returns false for a Cluster of a ClusterClass until the topology controller has set both references.
func started(cluster *clusterv1.Cluster) bool {
	return !cluster.DeletionTimestamp.IsZero() || cluster.Spec.Topology == nil ||
		(cluster.Spec.InfrastructureRef != nil && cluster.Spec.ControlPlaneRef != nil)
}

// isStarted is started as a filter of events.
func isStarted(obj client.Object) bool {
	cluster, ok := obj.(*clusterv1.Cluster)
	return ok && started(cluster)
}

func referenceName(ref *corev1.ObjectReference) string { return ref.Kind + " " + ref.Name }
