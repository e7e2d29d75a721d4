package machinepool

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Clusters connects to workload clusters. It must cache Nodes, indexed by remote.NodeProviderID.
	Clusters *remote.Clusters
	// Taints is the feature gate MachineTaintPropagation: taints of the template are set on Nodes.
	Taints bool
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := newController(step.ClientsOf(mgr, "machinepool-controller", o.Filter))
	c.workloads, c.taints = o.Clusters, o.Taints
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = append(declared.Watches, step.From(o.Clusters.Source(remote.Events{
		Connection: c.ofConnection,
		Watches:    []remote.Watch{{Object: &corev1.Node{}, Requests: c.ofNode, Changed: nodeChanged}},
	})))
	built, err := declared.Add(ctx, mgr, c.Clients)
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
func newController(clients step.Clients) *Controller {
	return &Controller{
		Clients: clients,
		applier: ssa.NewApplier(clients.Client, ssa.NewSchemas(clients.Client, clients.Live), fieldManager),
	}
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*clusterv1.MachinePool, *scope] {
	return step.Controller[*clusterv1.MachinePool, *scope]{
		Name: "machinepool",
		New:  func() *clusterv1.MachinePool { return &clusterv1.MachinePool{} },
		Watches: []step.Watch{
			step.Owned(&clusterv1.Machine{}, machineChanges()),
			step.Mapped(&clusterv1.Cluster{}, c.ofCluster, watch.Cluster(watch.Paused, watch.Deleting, watch.ControlPlaneInitialized)),
		},
		Paused:  ownership.PausedByClusterName(c.Client, func(p *clusterv1.MachinePool) string { return p.Spec.ClusterName }),
		Indexes: indexes(),
		Scope:   c.scope,
		Steps: []step.Step[*scope]{
			step.Do("cluster", exists),
			step.Do("adopt", adopt),
			step.All(
				step.Do("bootstrap", reference.Reported(c.bootstrap)).Sets(clusterv1.BootstrapReadyV1Beta1Condition),
				step.Do("infrastructure", reference.Reported(c.infrastructure)).Sets(clusterv1.InfrastructureReadyV1Beta1Condition),
				step.InOrder(
					step.Do("list-machines", c.listMachines),
					step.Do("sync-machines", c.syncMachines),
					step.Do("create-machines", c.createMachines),
					step.Do("delete-machines", c.deleteMachines),
				),
				step.Do("nodes", c.nodes).Sets(clusterv1.ReplicasReadyV1Beta1Condition),
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
		Reports:    reports,
		Settle:     step.Settle{For: settle, Conditions: []string{clusterv1.AvailableCondition}, First: true},
		Conditions: conditions(),
		Observed:   func(p *clusterv1.MachinePool, g int64) { p.Status.ObservedGeneration = g },
		Progress:   progress(),
	}
}

// settle is how long reports that users wait for are held back: Nodes often change together.
const settle = time.Second

// conditions declares the conditions that a MachinePool's Ready summarizes.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{
		clusterv1.BootstrapReadyV1Beta1Condition, clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.ReplicasReadyV1Beta1Condition,
	}}
}

// progress delays the first writes of status: infrastructure providers wait only for the name of the bootstrap data Secret,
// which is in the spec.
func progress() *step.Progress {
	return &step.Progress{
		First:     []string{"phase", "initialization.bootstrapDataSecretCreated", "replicas"},
		FirstTrue: []clusterv1.ConditionType{clusterv1.BootstrapReadyV1Beta1Condition},
	}
}
