package machine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/events"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/machinepool"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects of this manager.
	Filter watch.Filter
	Engine engine.Engine
	// Kinds are the kinds of the objects.
	Kinds kinds.Set
	// Events are the events of containers.
	Events *events.Stream
	// Clusters connects to workload clusters. It must cache Nodes.
	Clusters *remote.Clusters
	// Jobs run in the background of the manager.
	Jobs *job.Jobs
	// Pools is whether MachinePools exist: their Machines use the pool's bootstrap data.
	Pools bool
}

// conditions declares the conditions that Ready summarizes. Until the machine has a provider ID, Ready has a step counter.
func (c *Controller) conditions() condition.Kind {
	all := []clusterv1.ConditionType{dockerv1.ContainerProvisionedV1Beta1Condition, dockerv1.BootstrapExecSucceededV1Beta1Condition}
	return condition.Kind{
		Ready: all,
		StepCounter: func(on condition.Getter) ([]clusterv1.ConditionType, bool) {
			obj, ok := on.(step.Object)
			if !ok {
				return all, false
			}
			m, ok := c.kinds.MachineOf(obj)
			return all, ok && m.DeletionTimestamp.IsZero() && *m.ProviderID == ""
		},
	}
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{
		Clients: step.ClientsOf(mgr, o.Kinds.MachineController()+"-controller", o.Filter), kinds: o.Kinds,
		engine: o.Engine, workloads: o.Clusters, jobs: o.Jobs, pools: o.Pools,
	}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = []step.Watch{
		step.Mapped(&clusterv1.Machine{}, watch.Infrastructure(o.Kinds.MachineKind), watch.Bootstrapped()),
		step.Mapped(&clusterv1.Cluster{}, c.ofCluster, watch.Cluster(watch.Paused, watch.Deleting, watch.InfrastructureReady)),
		step.From(o.Events.Source(o.Kinds.MachineKind, events.Lookup{All: c.all, Named: c.named})),
		step.From(o.Jobs.Source()),
		step.From(o.Clusters.Source(remote.Events{
			Connection: c.joining,
			Watches:    []remote.Watch{{Object: &corev1.Node{}, Requests: c.ofNode, Changed: nodeChanged}},
		})),
	}
	if o.Pools {
		declared.Watches = append(declared.Watches, step.Mapped(&clusterv1.MachinePool{}, c.ofPool, machinepool.Bootstrapped()))
	}
	_, err := declared.Add(ctx, mgr, c.Clients)
	return err
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[step.Object, *scope] {
	return step.Controller[step.Object, *scope]{
		Name:    c.kinds.MachineController(),
		New:     c.kinds.NewMachine,
		Selects: c.kinds.IsMachine,
		Indexes: indexes(c.kinds),
		Paused:  ownership.PausedByCluster[step.Object](c.Client),
		Scope:   c.scope,
		Steps: []step.Step[*scope]{
			step.Do("owners", c.owners),
			step.Do("prepare", c.prepare).Sets(dockerv1.ContainerProvisionedV1Beta1Condition),
			step.Do("claim", c.claim),
			step.Do("etcd-command", c.etcdCommand),
			step.Do("container", c.container).Sets(dockerv1.ContainerProvisionedV1Beta1Condition),
			step.Do("preload", c.preload).Sets(dockerv1.ContainerProvisionedV1Beta1Condition),
			step.Do("load-balancer", c.loadBalancer),
			step.Do("bootstrap", c.bootstrap).Sets(dockerv1.BootstrapExecSucceededV1Beta1Condition),
			step.Do("node", c.node),
		},
		Deletion:   []step.Step[*scope]{step.Do("remove", c.remove).Sets(dockerv1.ContainerProvisionedV1Beta1Condition)},
		Conditions: c.conditions(),
		Progress:   &step.Progress{OnlyFirst: true},
	}
}
