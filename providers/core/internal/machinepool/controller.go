package machinepool

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// fieldManager is the field manager of the Machines that this controller applies.
const fieldManager = "machinepool-controller"

// visibilityTimeout is how long to wait until the cache has all Machines that a reconcile created.
const visibilityTimeout = 5 * time.Second

// Workloads connects to workload clusters.
type Workloads interface {
	Get(ctx context.Context, cluster types.NamespacedName) (*remote.Cluster, error)
}

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Clusters connects to workload clusters. It must cache Nodes, indexed by remote.NodeProviderID.
	Clusters *remote.Clusters
}

// Controller reconciles MachinePools.
type Controller struct {
	step.Outside
	follow    *reference.Follower
	workloads Workloads
	applier   *ssa.Applier
	// machineKinds watches the kinds of infrastructure machines.
	machineKinds *external.Watcher
	// visibilityTimeout is how long to wait until the cache has created Machines.
	visibilityTimeout time.Duration
}

// conditions declares the conditions that a MachinePool's Ready summarizes.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{
		clusterv1.BootstrapReadyCondition, clusterv1.InfrastructureReadyCondition, clusterv1.ReplicasReadyCondition,
	}}
}

// progress delays the first writes of status: infrastructure providers wait only for the name of the bootstrap data Secret,
// which is in the spec.
func progress() *step.Progress {
	return &step.Progress{
		First:     []string{"phase", "bootstrapReady"},
		FirstTrue: []clusterv1.ConditionType{clusterv1.BootstrapReadyCondition},
	}
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := newController(step.OutsideOf(mgr, "machinepool-controller", o.Filter))
	c.workloads = o.Clusters
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = []step.Watch{
		step.Owned(&clusterv1.Machine{}, machineChanges()),
		step.Mapped(&clusterv1.Cluster{}, c.ofCluster, watch.Cluster(watch.Paused, watch.Deleting, watch.ControlPlaneInitialized)),
		step.From(o.Clusters.Source(remote.Events{
			Connection: c.ofConnection,
			Watches:    []remote.Watch{{Object: &corev1.Node{}, Requests: c.ofNode, Changed: nodeChanged}},
		})),
	}
	built, err := declared.Add(ctx, mgr, c.Outside)
	if err != nil {
		return err
	}
	c.machineKinds = external.NewWatcher(built, mgr.GetCache())
	c.follow = &reference.Follower{
		Client:  c.Client,
		Live:    c.Live,
		Reader:  external.Reader{Client: c.Client, Versions: contract.APIVersions{Reader: c.Client}},
		Watcher: external.NewWatcher(built, mgr.GetCache()),
		Kind:    clusterv1.GroupVersion.WithKind(clusterv1.MachinePoolKind), Referrers: &clusterv1.MachinePoolList{},
	}
	return nil
}

// newController returns a Controller that does not follow references yet.
func newController(outside step.Outside) *Controller {
	return &Controller{
		Outside: outside, visibilityTimeout: visibilityTimeout,
		applier: ssa.NewApplier(outside.Client, ssa.NewSchemas(outside.Client, outside.Live), fieldManager),
	}
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*clusterv1.MachinePool, *scope] {
	return step.Controller[*clusterv1.MachinePool, *scope]{
		Name:    "machinepool",
		New:     func() *clusterv1.MachinePool { return &clusterv1.MachinePool{} },
		Paused:  c.clusterPaused,
		Indexes: indexes(),
		Scope:   c.scope,
		Steps: []step.Step[*scope]{
			step.Do("cluster", exists),
			step.Do("adopt", adopt),
			step.All(
				step.Do("bootstrap", c.bootstrap).Sets(clusterv1.BootstrapReadyCondition),
				step.Do("infrastructure", c.infrastructure).Sets(clusterv1.InfrastructureReadyCondition),
				step.InOrder(
					step.Do("list-machines", c.listMachines),
					step.Do("sync-machines", c.syncMachines),
					step.Do("create-machines", c.createMachines),
					step.Do("delete-machines", c.deleteMachines),
				),
				step.Do("nodes", c.nodes).Sets(clusterv1.ReplicasReadyCondition),
			),
		},
		Deletion: []step.Step[*scope]{
			step.Do("delete-infrastructure", c.deleteInfrastructure),
			step.Do("delete-bootstrap", c.deleteBootstrap),
			step.Do("delete-all-machines", c.deleteAllMachines),
			step.Do("delete-nodes", c.deleteNodes),
			step.Do("finish", finish),
		},
		Report: []step.Step[*scope]{
			step.Do("phase", phase),
			step.Do("bounds", bound),
			step.Do("problems", problems),
		},
		Conditions: conditions(),
		Observed:   func(p *clusterv1.MachinePool, g int64) { p.Status.ObservedGeneration = g },
		Progress:   progress(),
	}
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	pool *clusterv1.MachinePool
	// cluster is nil if it does not exist.
	cluster *clusterv1.Cluster
	// infra is the infrastructure object; nil until the infrastructure step has read it, or if it does not exist.
	infra *contract.InfrastructureMachinePool
	// machineKind is the kind of the infrastructure machines; empty if the provider has none.
	machineKind schema.GroupVersionKind
	// infraMachines are the infrastructure machines, and machines the Machines of the pool in the cache, sorted by name.
	infraMachines []*unstructured.Unstructured
	machines      []*clusterv1.Machine
	// problems are the errors of individual Machines, which do not stop the work on others.
	problems []error
}

func (c *Controller) scope(ctx context.Context, p *clusterv1.MachinePool) (*scope, error) {
	s := &scope{pool: p}
	cluster, err := ownership.ClusterNamed(ctx, c.Client, s.key())
	s.cluster = cluster
	return s, err
}

func (c *Controller) clusterPaused(ctx context.Context, p *clusterv1.MachinePool) (bool, error) {
	cluster, err := ownership.ClusterNamed(ctx, c.Client, client.ObjectKey{Namespace: p.Namespace, Name: p.Spec.ClusterName})
	return cluster != nil && cluster.Spec.Paused, err
}

// key returns the key of the Cluster.
func (s *scope) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.pool.Namespace, Name: s.pool.Spec.ClusterName}
}

// report records an error that concerns only one object.
func (s *scope) report(err error) {
	if err != nil {
		s.problems = append(s.problems, err)
	}
}

// problems returns the errors of individual objects.
func problems(_ context.Context, s *scope) (step.Result, error) {
	return step.Done(), errors.Join(s.problems...)
}

// exists waits for the Cluster.
func exists(_ context.Context, s *scope) (step.Result, error) {
	if s.cluster == nil {
		return step.Wait("Cluster " + s.pool.Spec.ClusterName + " (spec.clusterName) to exist"), nil
	}
	return step.Done(), nil
}

// desired returns spec.replicas.
func desired(p *clusterv1.MachinePool) int32 { return ptr.Deref(p.Spec.Replicas, 1) }

// managedExternally reports whether an autoscaler outside of Cluster API manages spec.replicas.
func managedExternally(p *clusterv1.MachinePool) bool {
	value, ok := p.Annotations[clusterv1.ReplicasManagedByAnnotation]
	return ok && value != "false"
}
