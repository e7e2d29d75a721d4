package cluster

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/events"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
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
	// Events are the changes of containers.
	Events *events.Stream
	// Jobs run in the background of the manager.
	Jobs *job.Jobs
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{
		Clients: step.ClientsOf(mgr, o.Kinds.ClusterController()+"-controller", o.Filter), kinds: o.Kinds, engine: o.Engine, jobs: o.Jobs,
	}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = append(declared.Watches, step.From(o.Events.Source(o.Kinds.ClusterKind, events.Lookup{All: c.all, Named: c.named})),
		step.From(o.Jobs.Source()))
	_, err := declared.Add(ctx, mgr, c.Clients)
	return err
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[step.Object, *scope] {
	ours := func(s *scope) bool { return !ownership.ManagedExternally(s.obj.Object) }
	return step.Controller[step.Object, *scope]{
		Name:    c.kinds.ClusterController(),
		New:     c.kinds.NewCluster,
		Selects: c.kinds.IsCluster,
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Cluster{}, watch.Infrastructure(c.kinds.ClusterKind),
				watch.Cluster(watch.Paused, watch.Deleting, watch.InfrastructureRef)),
			step.Mapped(c.kinds.NewMachine(), c.ofMachine, c.backendChanged()),
			step.Mapped(&clusterv1.Machine{}, c.ofMachine, controlPlaneLeaves()),
		},
		Paused: ownership.PausedByCluster[step.Object](c.Client),
		Scope:  c.scope,
		Steps: []step.Step[*scope]{step.When(ours,
			step.Do("adopt", c.adopt),
			step.Do("container", c.container).Sets(dockerv1.LoadBalancerAvailableV1Beta1Condition),
			step.Do("configure", c.configure).Sets(dockerv1.LoadBalancerAvailableV1Beta1Condition),
			step.Do("register", c.register),
			step.Do("endpoint", c.endpoint).Sets(dockerv1.LoadBalancerAvailableV1Beta1Condition),
		)},
		Deletion: []step.Step[*scope]{step.When(ours,
			step.Do("remove", c.remove).Sets(dockerv1.LoadBalancerAvailableV1Beta1Condition),
		)},
		Conditions: condition.Kind{
			Ready: []clusterv1.ConditionType{dockerv1.LoadBalancerAvailableV1Beta1Condition},
			StepCounter: func(on condition.Getter) ([]clusterv1.ConditionType, bool) {
				obj, ok := on.(step.Object)
				return []clusterv1.ConditionType{dockerv1.LoadBalancerAvailableV1Beta1Condition}, ok && obj.GetDeletionTimestamp().IsZero()
			},
		},
	}
}
