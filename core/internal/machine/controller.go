package machine

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/reference"
	"sigs.k8s.io/cluster-api/internal/condition"
	"sigs.k8s.io/cluster-api/internal/contract"
	"sigs.k8s.io/cluster-api/internal/external"
	"sigs.k8s.io/cluster-api/internal/remote"
	"sigs.k8s.io/cluster-api/internal/step"
)

// Workloads gives access to workload clusters.
type Workloads interface {
	Get(ctx context.Context, cluster types.NamespacedName) (*remote.Cluster, error)
}

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter drops objects that another manager is responsible for.
	Filter predicate.Predicate
	// Clusters connects to workload clusters; Nodes must be among the kinds it caches, indexed by NodeProviderID.
	Clusters *remote.Clusters
	// DrainTimeout bounds requests that drain a Node.
	DrainTimeout time.Duration
}

// Controller reconciles Machines.
type Controller struct {
	step.Outside
	follow       *reference.Follower
	workloads    Workloads
	drainTimeout time.Duration
}

// conditions declares what feeds a Machine's Ready. While a Machine comes up, its message counts the first
// two steps.
func conditions() condition.Kind {
	bringUp := []clusterv1.ConditionType{clusterv1.InfrastructureReadyCondition, clusterv1.BootstrapReadyCondition}
	return condition.Kind{
		Ready: append(bringUp[:2:2],
			clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition, clusterv1.DrainingSucceededCondition),
		StepCounter: func(on condition.Getter) ([]clusterv1.ConditionType, bool) {
			m, ok := on.(*clusterv1.Machine)
			if !ok || !m.DeletionTimestamp.IsZero() || m.Spec.ProviderID != nil ||
				condition.Has(m, clusterv1.MachineHealthCheckSucceededCondition) || condition.Has(m, clusterv1.MachineOwnerRemediatedCondition) {
				return nil, false
			}
			return bringUp, true
		},
	}
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Outside: step.From(mgr, "machine-controller"), workloads: o.Clusters, drainTimeout: o.DrainTimeout}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &clusterv1.Machine{}, byProviderID, providerID); err != nil {
		return fmt.Errorf("indexing Machines by provider ID: %w", err)
	}
	runner := &step.Runner[*clusterv1.Machine]{
		Outside:    c.Outside,
		New:        func() *clusterv1.Machine { return &clusterv1.Machine{} },
		Conditions: conditions(),
		Paused:     c.clusterPaused,
		Do:         c.Reconcile,
		Observed:   func(m *clusterv1.Machine, g int64) { m.Status.ObservedGeneration = g },
	}
	built, err := ctrl.NewControllerManagedBy(mgr).Named("machine").
		For(&clusterv1.Machine{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}, o.Filter)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(clusterMatters())).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(c.ofDeployment), builder.WithPredicates(revisionMatters())).
		WatchesRawSource(o.Clusters.Source(remote.Events{
			Connection: c.waitingFor,
			Watches:    []remote.Watch{{Object: remote.EmptyNode(), Requests: c.ofNode, Changed: nodeMatters}},
		})).
		WithOptions(step.Options(o.Concurrency)).
		Build(runner)
	if err != nil {
		return fmt.Errorf("setting up the machine controller: %w", err)
	}
	c.follow = &reference.Follower{
		Client:  c.Client,
		Reader:  external.Reader{Client: c.Client, Versions: contract.APIVersions{Reader: c.Client}},
		Watcher: external.NewWatcher(built, mgr.GetCache()),
		Kind:    clusterv1.GroupVersion.WithKind(clusterv1.MachineKind),
	}
	return nil
}

// scope is what the steps work on.
type scope struct {
	machine *clusterv1.Machine
	cluster *clusterv1.Cluster
	// ready is whether the infrastructure machine was ready before this reconcile.
	wasReady bool
}

// Reconcile brings a Machine to what its spec asks for: bootstrap data, infrastructure, a Node.
func (c *Controller) Reconcile(ctx context.Context, m *clusterv1.Machine) (step.Result, error) {
	s, err := c.scope(ctx, m)
	if err != nil {
		return step.Result{}, err
	}
	defer c.setPhase(m)
	if !m.DeletionTimestamp.IsZero() {
		return step.Run(ctx, s, c.work, c.deleteInfrastructure, c.deleteBootstrap, c.deleteNode, c.finish)
	}
	return step.Run(ctx, s, c.adopt, step.All(c.bootstrap, c.infrastructure, c.node, c.certificates))
}

func (c *Controller) scope(ctx context.Context, m *clusterv1.Machine) (*scope, error) {
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}
	if err := c.Client.Get(ctx, key, cluster); err != nil {
		return nil, fmt.Errorf("reading Cluster %s, which spec.clusterName names: %w", key, err)
	}
	return &scope{machine: m, cluster: cluster, wasReady: m.Status.InfrastructureReady}, nil
}

func (c *Controller) clusterPaused(ctx context.Context, m *clusterv1.Machine) (bool, error) {
	cluster := &clusterv1.Cluster{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}, cluster)
	return cluster.Spec.Paused, client.IgnoreNotFound(err)
}

func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.cluster) }

func (s *scope) isControlPlane() bool { return isControlPlane(s.machine) }

func isControlPlane(m *clusterv1.Machine) bool {
	_, ok := m.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// clusterMatters lets a Cluster's changes through that its Machines wait for.
func clusterMatters() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1.Cluster)
			if !ok {
				return false
			}
			after, ok := e.ObjectNew.(*clusterv1.Cluster)
			return ok && (before.Spec.Paused != after.Spec.Paused ||
				before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
				condition.IsTrue(before, clusterv1.ControlPlaneInitializedCondition) != condition.IsTrue(after, clusterv1.ControlPlaneInitializedCondition))
		},
	}
}

// revisionMatters lets a MachineDeployment through whose newest revision changed: it decides a taint.
func revisionMatters() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetAnnotations()[clusterv1.RevisionAnnotation] != e.ObjectNew.GetAnnotations()[clusterv1.RevisionAnnotation]
		},
	}
}

func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.labelled(ctx, obj.GetNamespace(), clusterv1.ClusterNameLabel, obj.GetName(), func(*clusterv1.Machine) bool { return true })
}

func (c *Controller) ofDeployment(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.labelled(ctx, obj.GetNamespace(), clusterv1.MachineDeploymentNameLabel, obj.GetName(),
		func(m *clusterv1.Machine) bool { return m.Status.NodeRef != nil })
}

// waitingFor are the Machines of a cluster that need its API server: those without a Node yet, and those
// that are being deleted.
func (c *Controller) waitingFor(ctx context.Context, cluster types.NamespacedName) []reconcile.Request {
	return c.labelled(ctx, cluster.Namespace, clusterv1.ClusterNameLabel, cluster.Name, func(m *clusterv1.Machine) bool {
		return m.Spec.ProviderID != nil && m.Status.NodeRef == nil || !m.DeletionTimestamp.IsZero()
	})
}

func (c *Controller) labelled(ctx context.Context, namespace, label, value string, matters func(*clusterv1.Machine) bool) []reconcile.Request {
	list := &clusterv1.MachineList{}
	if err := c.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{label: value}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list Machines", "label", label, "value", value)
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if matters(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}
