package machinepool

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/step"
	"sigs.k8s.io/cluster-api/provider/watch"
)

// Kind is the kind of the pools.
const Kind = "DockerMachinePool"

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects of this manager.
	Filter watch.Filter
}

// Controller reconciles DockerMachinePools.
type Controller struct {
	step.Outside
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Outside: step.OutsideOf(mgr, "dockermachinepool-controller", o.Filter)}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = []step.Watch{
		step.Mapped(&clusterv1.MachinePool{}, infrastructureOf, poolChanged()),
		step.Mapped(&clusterv1.Machine{}, c.ofMachine, machineChanged()),
		step.Mapped(&dockerv1.DockerMachine{}, ofDockerMachine, dockerMachineChanged()),
		step.Mapped(&clusterv1.Cluster{}, watch.Labeled(c.Client, &dockerv1.DockerMachinePoolList{}), watch.Cluster(watch.Paused, watch.InfrastructureReady)),
	}
	_, err := declared.Add(ctx, mgr, c.Outside)
	return err
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*dockerv1.DockerMachinePool, *scope] {
	return step.Controller[*dockerv1.DockerMachinePool, *scope]{
		Name:   "dockermachinepool",
		New:    func() *dockerv1.DockerMachinePool { return &dockerv1.DockerMachinePool{} },
		Paused: ownership.PausedByCluster[*dockerv1.DockerMachinePool](c.Client),
		Scope:  c.scope,
		Steps: []step.Step[*scope]{
			step.Do("owners", c.owners),
			step.Do("claim", c.claim),
			step.Do("prepare", c.prepare).Sets(dockerv1.ReplicasReadyCondition),
			step.Do("scale", c.scale).Sets(dockerv1.MachinesCreatedCondition),
		},
		Deletion: []step.Step[*scope]{step.Do("remove", c.remove).Sets(dockerv1.ReplicasReadyCondition)},
		Report:   []step.Step[*scope]{step.Do("status", c.status)},
		Conditions: condition.Kind{Ready: []clusterv1.ConditionType{
			dockerv1.MachinesCreatedCondition, dockerv1.ResizedCondition, dockerv1.ReplicasReadyCondition,
		}},
		Observed: func(p *dockerv1.DockerMachinePool, generation int64) { p.Status.ObservedGeneration = generation },
	}
}

// scope is the state that the steps share.
type scope struct {
	obj *dockerv1.DockerMachinePool
	// pool and cluster are nil if they do not exist.
	pool    *clusterv1.MachinePool
	cluster *clusterv1.Cluster
	// members are the machines of the pool, sorted by name.
	members []member
	// waits is whether the pool waits for what its first machines depend on.
	waits bool
}

func (c *Controller) scope(ctx context.Context, obj *dockerv1.DockerMachinePool) (*scope, error) {
	s := &scope{obj: obj}
	var err error
	if s.pool, err = ownership.MachinePoolOf(ctx, c.Client, obj); err != nil {
		return nil, err
	}
	if s.cluster, err = ownership.ClusterOf(ctx, c.Client, obj); err != nil {
		return nil, err
	}
	s.members, err = membersOf(ctx, c.Client, obj)
	return s, err
}
