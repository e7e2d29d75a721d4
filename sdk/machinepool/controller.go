package machinepool

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure a controller.
type Options struct {
	// Concurrency is how many pools are reconciled at the same time.
	Concurrency int
	// Filter selects the objects of the manager.
	Filter watch.Filter
}

// Controller reconciles the pools of a provider.
type Controller[P, M step.Object] struct {
	step.Clients
	provider Provider[P, M]
}

// New returns a controller. Tests use its Runner; managers use Setup.
func New[P, M step.Object](provider Provider[P, M], clients step.Clients) *Controller[P, M] {
	return &Controller[P, M]{Clients: clients, provider: provider}
}

// Setup adds the controller of a provider's pools to a manager.
func Setup[P, M step.Object](ctx context.Context, mgr ctrl.Manager, provider Provider[P, M], o Options) error {
	c := New(provider, step.ClientsOf(mgr, provider.Name+"-controller", o.Filter))
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = []step.Watch{
		step.Mapped(&clusterv1.MachinePool{}, watch.Infrastructure(provider.Pool.Kind), poolChanged()),
		step.Mapped(&clusterv1.Machine{}, c.ofMachine, machineChanged()),
		step.Mapped(provider.NewMachine(provider.NewPool()), c.ofInfraMachine, c.infraMachineChanged()),
		step.Mapped(&clusterv1.Cluster{}, watch.Labeled(c.Client, provider.NewPools()), watch.Cluster(watch.Paused, watch.InfrastructureReady)),
	}
	_, err := declared.Add(ctx, mgr, c.Clients)
	return err
}

// Runner returns the reconciler.
func (c *Controller[P, M]) Runner() *step.Runner[P] { return c.declared().Runner(c.Clients) }

// declared returns the declaration of the controller.
func (c *Controller[P, M]) declared() step.Controller[P, *scope[P, M]] {
	return step.Controller[P, *scope[P, M]]{
		Name:   c.provider.Name,
		New:    c.provider.NewPool,
		Paused: ownership.PausedByCluster[P](c.Client),
		Scope:  c.scope,
		Steps: []step.Step[*scope[P, M]]{
			step.Do("owners", c.owners),
			step.Do("claim", c.claim),
			step.Do("prepare", c.prepare).Sets(ReplicasReadyCondition),
			step.Do("external", c.external),
			step.Do("scale", c.scale).Sets(MachinesCreatedCondition),
		},
		Deletion:   []step.Step[*scope[P, M]]{step.Do("remove", c.remove).Sets(ReplicasReadyCondition)},
		Report:     []step.Step[*scope[P, M]]{step.Do("status", c.status)},
		Conditions: condition.Kind{Ready: []clusterv1.ConditionType{MachinesCreatedCondition, ResizedCondition, ReplicasReadyCondition}},
		Observed:   func(p P, generation int64) { *c.provider.Fields(p).ObservedGeneration = generation },
	}
}

// scope is the state that the steps share.
type scope[P, M step.Object] struct {
	provider *Provider[P, M]
	obj      P
	// pool and cluster are nil if they do not exist.
	pool    *clusterv1.MachinePool
	cluster *clusterv1.Cluster
	// members are the machines of the pool, sorted by name.
	members []Member[M]
	// waits is whether the pool waits for what its first machines depend on.
	waits bool
}

func (c *Controller[P, M]) scope(ctx context.Context, obj P) (*scope[P, M], error) {
	s := &scope[P, M]{provider: &c.provider, obj: obj}
	var err error
	if s.pool, err = ownership.MachinePoolOf(ctx, c.Client, obj); err != nil {
		return nil, err
	}
	if s.cluster, err = ownership.ClusterOf(ctx, c.Client, obj); err != nil {
		return nil, err
	}
	s.members, err = c.membersOf(ctx, c.Client, obj)
	return s, err
}
