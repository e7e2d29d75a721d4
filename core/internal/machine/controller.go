package machine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/reference"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/remote"
	"sigs.k8s.io/cluster-api/provider/step"
	"sigs.k8s.io/cluster-api/provider/watchfilter"
)

// Workloads gives access to workload clusters.
type Workloads interface {
	Get(ctx context.Context, cluster types.NamespacedName) (*remote.Cluster, error)
}

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that are this manager's.
	Filter watchfilter.Filter
	// Clusters connects to workload clusters; Nodes must be among the kinds it caches, indexed by NodeProviderID.
	Clusters *remote.Clusters
	// DrainTimeout bounds one attempt to drain a Node.
	DrainTimeout time.Duration
}

// Controller reconciles Machines.
type Controller struct {
	step.Outside
	follow    *reference.Follower
	workloads Workloads
	drainer   drainer
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

// progress: infrastructure providers wait for the name of the bootstrap data's Secret, which is in the spec.
func progress() *step.Progress {
	return &step.Progress{
		First:     []string{"phase", "lastUpdated", "bootstrapReady"},
		FirstTrue: []clusterv1.ConditionType{clusterv1.BootstrapReadyCondition},
	}
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Outside: step.From(mgr, "machine-controller", o.Filter), workloads: o.Clusters, drainer: evictor{timeout: o.DrainTimeout}}
	for field, index := range indexes() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &clusterv1.Machine{}, field, index); err != nil {
			return fmt.Errorf("indexing Machines by %s: %w", field, err)
		}
	}
	runner := &step.Runner[*clusterv1.Machine]{
		Outside:    c.Outside,
		New:        func() *clusterv1.Machine { return &clusterv1.Machine{} },
		Conditions: conditions(),
		Paused:     c.clusterPaused,
		Do:         c.Reconcile,
		Observed:   func(m *clusterv1.Machine, g int64) { m.Status.ObservedGeneration = g },
		Progress:   progress(),
	}
	built, err := ctrl.NewControllerManagedBy(mgr).Named("machine").
		For(&clusterv1.Machine{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}, o.Filter.Predicate())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(clusterMatters())).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(c.ofDeployment), builder.WithPredicates(revisionMatters())).
		Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(c.ofSet), builder.WithPredicates(revisionMatters())).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.ofKubeconfig), builder.WithPredicates(isKubeconfig())).
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
		Kind:    clusterv1.GroupVersion.WithKind(clusterv1.MachineKind), Referrers: &clusterv1.MachineList{},
	}
	return nil
}

// scope is what the steps work on.
type scope struct {
	machine *clusterv1.Machine
	// cluster is nil when it does not exist: not yet, or not any more.
	cluster *clusterv1.Cluster
}

// Reconcile brings a Machine to what its spec asks for: bootstrap data, infrastructure, a Node.
func (c *Controller) Reconcile(ctx context.Context, m *clusterv1.Machine) (step.Result, error) {
	s, err := c.scope(ctx, m)
	if err != nil {
		return step.Result{}, err
	}
	defer bound(m)
	defer c.setPhase(m)
	switch {
	case !m.DeletionTimestamp.IsZero():
		return step.Run(ctx, s, c.work, c.deleteInfrastructure, c.deleteBootstrap, c.deleteNode, c.finish)
	case s.cluster == nil:
		return step.Wait("Cluster " + m.Spec.ClusterName + ", which spec.clusterName names, to exist"), nil
	}
	return step.Run(ctx, s, c.adopt, step.All(c.bootstrap, c.infrastructure, c.node, c.certificates))
}

func (c *Controller) scope(ctx context.Context, m *clusterv1.Machine) (*scope, error) {
	s := &scope{machine: m, cluster: &clusterv1.Cluster{}}
	err := c.Client.Get(ctx, s.key(), s.cluster)
	if apierrors.IsNotFound(err) {
		s.cluster, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Cluster %s, which spec.clusterName names: %w", s.key(), err)
	}
	return s, nil
}

func (c *Controller) clusterPaused(ctx context.Context, m *clusterv1.Machine) (bool, error) {
	cluster := &clusterv1.Cluster{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}, cluster)
	return cluster.Spec.Paused, client.IgnoreNotFound(err)
}

// key is that of the Cluster.
func (s *scope) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.machine.Namespace, Name: s.machine.Spec.ClusterName}
}

func (s *scope) isControlPlane() bool { return isControlPlane(s.machine) }

func isControlPlane(m *clusterv1.Machine) bool {
	_, ok := m.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}
