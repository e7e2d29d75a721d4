package machine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/events"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/node"
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
	// Events are the events of containers.
	Events *events.Stream
	// Clusters connects to workload clusters. It must cache Nodes.
	Clusters *remote.Clusters
	// Jobs run in the background of the manager.
	Jobs *job.Jobs
	// Pools is whether MachinePools exist: their Machines use the pool's bootstrap data.
	Pools bool
}

// Workloads connects to workload clusters.
type Workloads interface {
	Get(ctx context.Context, cluster types.NamespacedName) (*remote.Cluster, error)
}

// Controller reconciles DockerMachines.
type Controller struct {
	step.Clients
	engine    engine.Engine
	workloads Workloads
	jobs      *job.Jobs
	pools     bool
}

// conditions declares the conditions that Ready summarizes. Until the machine has a provider ID, Ready has a step counter.
func conditions() condition.Kind {
	all := []clusterv1.ConditionType{dockerv1.ContainerProvisionedCondition, dockerv1.BootstrapExecSucceededCondition}
	return condition.Kind{
		Ready: all,
		StepCounter: func(on condition.Getter) ([]clusterv1.ConditionType, bool) {
			m, ok := on.(*dockerv1.DockerMachine)
			return all, ok && m.DeletionTimestamp.IsZero() && m.Spec.ProviderID == nil
		},
	}
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{
		Clients: step.ClientsOf(mgr, "dockermachine-controller", o.Filter),
		engine:  o.Engine, workloads: o.Clusters, jobs: o.Jobs, pools: o.Pools,
	}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = []step.Watch{
		step.Mapped(&clusterv1.Machine{}, watch.Infrastructure(node.Kind), watch.Bootstrapped()),
		step.Mapped(&clusterv1.Cluster{}, c.ofCluster, watch.Cluster(watch.Paused, watch.Deleting, watch.InfrastructureReady)),
		step.From(o.Events.Source(node.Kind, events.Lookup{All: c.all, Named: c.named})),
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
func (c *Controller) declared() step.Controller[*dockerv1.DockerMachine, *scope] {
	return step.Controller[*dockerv1.DockerMachine, *scope]{
		Name:    "dockermachine",
		New:     func() *dockerv1.DockerMachine { return &dockerv1.DockerMachine{} },
		Indexes: indexes(),
		Paused:  ownership.PausedByCluster[*dockerv1.DockerMachine](c.Client),
		Scope:   c.scope,
		Steps: []step.Step[*scope]{
			step.Do("owners", c.owners),
			step.Do("prepare", c.prepare).Sets(dockerv1.ContainerProvisionedCondition),
			step.Do("claim", c.claim),
			step.Do("container", c.container).Sets(dockerv1.ContainerProvisionedCondition),
			step.Do("preload", c.preload).Sets(dockerv1.ContainerProvisionedCondition),
			step.Do("load-balancer", c.loadBalancer),
			step.Do("bootstrap", c.bootstrap).Sets(dockerv1.BootstrapExecSucceededCondition),
			step.Do("node", c.node),
		},
		Deletion:   []step.Step[*scope]{step.Do("remove", c.remove).Sets(dockerv1.ContainerProvisionedCondition)},
		Conditions: conditions(),
		Progress:   &step.Progress{OnlyFirst: true},
	}
}

// scope is the state that the steps share.
type scope struct {
	// Machine describes the container.
	node.Machine
	obj *dockerv1.DockerMachine
	// machine and cluster are nil if they do not exist.
	machine *clusterv1.Machine
	cluster *clusterv1.Cluster
	// data is the name of the Secret with the bootstrap data, empty if it does not exist yet.
	data string
	// current is whether the object is known to be up to date, because this reconcile wrote it.
	current bool
}

// jobKey returns the key of a job for the object.
func (s *scope) jobKey(name string) job.Key {
	return job.Key{Object: client.ObjectKeyFromObject(s.obj), UID: s.obj.UID, Name: name}
}

func (c *Controller) scope(ctx context.Context, obj *dockerv1.DockerMachine) (*scope, error) {
	s := &scope{obj: obj}
	var err error
	if s.machine, err = ownership.MachineOf(ctx, c.Client, obj); err != nil {
		return nil, err
	}
	if s.cluster, err = ownership.ClusterOf(ctx, c.Client, obj); err != nil {
		return nil, err
	}
	s.Machine = node.Machine{Object: obj, Owner: s.machine, Cluster: obj.Labels[clusterv1.ClusterNameLabel]}
	if s.cluster != nil {
		s.Machine.Cluster = s.cluster.Name
	}
	s.data, err = c.bootstrapData(ctx, s.machine)
	return s, err
}

// failed is an error in the condition of the container.
func failed(err error) error {
	if step.IsStale(err) {
		return err
	}
	return &step.Error{Reason: dockerv1.ContainerProvisioningFailedReason, Severity: clusterv1.ConditionSeverityWarning, Err: err}
}
