package cluster

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/events"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
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
	// Events are the changes of containers.
	Events *events.Stream
	// Jobs run in the background of the manager.
	Jobs *job.Jobs
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Clients: step.ClientsOf(mgr, "dockercluster-controller", o.Filter), engine: o.Engine, jobs: o.Jobs}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = append(declared.Watches, step.From(o.Events.Source(kind, events.Lookup{All: c.all, Named: c.named})),
		step.From(o.Jobs.Source()))
	_, err := declared.Add(ctx, mgr, c.Clients)
	return err
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*dockerv1.DockerCluster, *scope] {
	ours := func(s *scope) bool { return !ownership.ManagedExternally(s.obj) }
	return step.Controller[*dockerv1.DockerCluster, *scope]{
		Name: "dockercluster",
		New:  func() *dockerv1.DockerCluster { return &dockerv1.DockerCluster{} },
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Cluster{}, watch.Infrastructure(kind), watch.Cluster(watch.Paused, watch.Deleting, watch.InfrastructureRef)),
			step.Mapped(&dockerv1.DockerMachine{}, c.ofMachine, backendChanged()),
			step.Mapped(&clusterv1.Machine{}, c.ofMachine, controlPlaneLeaves()),
		},
		Paused: ownership.PausedByCluster[*dockerv1.DockerCluster](c.Client),
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
				obj, ok := on.(*dockerv1.DockerCluster)
				return []clusterv1.ConditionType{dockerv1.LoadBalancerAvailableV1Beta1Condition}, ok && obj.DeletionTimestamp.IsZero()
			},
		},
	}
}
