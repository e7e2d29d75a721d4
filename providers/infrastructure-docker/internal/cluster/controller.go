package cluster

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/events"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// kind is the kind of the objects.
const kind = "DockerCluster"

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

// Controller reconciles DockerClusters.
type Controller struct {
	step.Clients
	engine engine.Engine
	jobs   *job.Jobs
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
			step.Mapped(&clusterv1.Cluster{}, watch.Infrastructure(kind), watch.Cluster(watch.Paused, watch.Deleting)),
			step.Mapped(&dockerv1.DockerMachine{}, c.ofMachine, backendChanged()),
			step.Mapped(&clusterv1.Machine{}, c.ofMachine, controlPlaneLeaves()),
		},
		Paused: ownership.PausedByCluster[*dockerv1.DockerCluster](c.Client),
		Scope:  c.scope,
		Steps: []step.Step[*scope]{step.When(ours,
			step.Do("adopt", c.adopt),
			step.Do("container", c.container).Sets(dockerv1.LoadBalancerAvailableCondition),
			step.Do("configure", c.configure).Sets(dockerv1.LoadBalancerAvailableCondition),
			step.Do("register", c.register),
			step.Do("endpoint", c.endpoint).Sets(dockerv1.LoadBalancerAvailableCondition),
		)},
		Deletion: []step.Step[*scope]{step.When(ours,
			step.Do("remove", c.remove).Sets(dockerv1.LoadBalancerAvailableCondition),
		)},
		Conditions: condition.Kind{
			Ready: []clusterv1.ConditionType{dockerv1.LoadBalancerAvailableCondition},
			StepCounter: func(on condition.Getter) ([]clusterv1.ConditionType, bool) {
				obj, ok := on.(*dockerv1.DockerCluster)
				return []clusterv1.ConditionType{dockerv1.LoadBalancerAvailableCondition}, ok && obj.DeletionTimestamp.IsZero()
			},
		},
	}
}

// scope is the state that the steps share.
type scope struct {
	obj *dockerv1.DockerCluster
	// cluster is nil if it does not exist.
	cluster *clusterv1.Cluster
	// name is the name of the container, and state its state once it runs.
	name  string
	state *engine.State
	// machines are the control plane machines in the configuration.
	machines []*dockerv1.DockerMachine
	// left are those that are not, because they are being deleted.
	left []*dockerv1.DockerMachine
}

// claim returns what the object says about its container.
func (s *scope) claim(cluster string) identity.Claim {
	return identity.Claim{
		Kind: kind, Object: s.obj, Cluster: cluster, Role: identity.LoadBalancer,
		Had: s.obj.Status.Ready || s.obj.Spec.ControlPlaneEndpoint.Host != "",
	}
}

func (c *Controller) scope(ctx context.Context, obj *dockerv1.DockerCluster) (*scope, error) {
	cluster, err := ownership.ClusterOf(ctx, c.Client, obj)
	return &scope{obj: obj, cluster: cluster}, err
}

// all returns requests for all DockerClusters, after the container runtime may have been unavailable: what failed is attempted again.
func (c *Controller) all(ctx context.Context) []reconcile.Request {
	c.jobs.RetryAll()
	return watch.Requests(ctx, c.Client, &dockerv1.DockerClusterList{})
}

// named returns the DockerClusters of Clusters of a name if the container has the name of their load balancers.
func (c *Controller) named(ctx context.Context, cluster, container string) []reconcile.Request {
	if cluster == "" || container != identity.LoadBalancerContainer(cluster) {
		return nil
	}
	return watch.Requests(ctx, c.Client, &dockerv1.DockerClusterList{}, client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
}

// ofMachine maps a DockerMachine or Machine to the DockerCluster of its Cluster.
func (c *Controller) ofMachine(ctx context.Context, obj client.Object) []reconcile.Request {
	cluster, err := ownership.ClusterOf(ctx, c.Client, obj)
	if err != nil || cluster == nil {
		return nil // Without its Cluster, there is no load balancer.
	}
	return watch.Infrastructure(kind)(ctx, cluster)
}

// backendChanged selects events of machines that change the configuration, or that lost their registration.
func backendChanged() predicate.Predicate {
	updated := watch.Updated(func(before, after *dockerv1.DockerMachine) bool {
		return addressOf(before, false) != addressOf(after, false) || addressOf(before, true) != addressOf(after, true) ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			before.Status.LoadBalancerConfigured && !after.Status.LoadBalancerConfigured && after.DeletionTimestamp.IsZero()
	})
	return predicate.Or(watch.Created(), watch.Deleted(), updated)
}

// controlPlaneLeaves selects the beginning of the deletion of a control plane Machine.
func controlPlaneLeaves() predicate.Predicate {
	return watch.Updated(func(before, after *clusterv1.Machine) bool {
		_, controlPlane := after.Labels[clusterv1.MachineControlPlaneLabel]
		return controlPlane && before.DeletionTimestamp.IsZero() && !after.DeletionTimestamp.IsZero()
	})
}

// failed returns an error that the condition of the load balancer reports. It is retried.
func failed(format string, args ...any) error {
	return &step.Error{
		Reason: dockerv1.LoadBalancerProvisioningFailedReason, Severity: clusterv1.ConditionSeverityWarning, Err: fmt.Errorf(format, args...),
	}
}
