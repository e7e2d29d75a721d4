package machine

import (
	"context"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/bootstrap"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/machinepool"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects of this manager.
	Filter watch.Filter
	Lab    *lab.Lab
	// Pools is whether MachinePools exist: their Machines use the pool's bootstrap data.
	Pools bool
}

// Controller reconciles InMemoryMachines.
type Controller struct {
	step.Clients
	lab   *lab.Lab
	pools bool
}

// conditions declares the conditions that Ready summarizes. While a machine is starting, Ready has a step counter.
func conditions() condition.Kind {
	worker := []clusterv1.ConditionType{inmemoryv1.VMProvisionedCondition, inmemoryv1.NodeProvisionedCondition}
	all := append(worker[:2:2], inmemoryv1.EtcdProvisionedCondition, inmemoryv1.APIServerProvisionedCondition)
	return condition.Kind{
		Ready: all,
		StepCounter: func(on condition.Getter) ([]clusterv1.ConditionType, bool) {
			m, ok := on.(*inmemoryv1.InMemoryMachine)
			if !ok || m.Spec.ProviderID != nil {
				return nil, false
			}
			if _, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]; controlPlane {
				return all, true
			}
			return worker, true
		},
	}
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Clients: step.ClientsOf(mgr, "inmemorymachine-controller", o.Filter), lab: o.Lab, pools: o.Pools}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	if o.Pools {
		declared.Watches = append(declared.Watches, step.Mapped(&clusterv1.MachinePool{}, c.ofPool, machinepool.Bootstrapped()))
	}
	return step.Add(ctx, mgr, c.Clients, declared)
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*inmemoryv1.InMemoryMachine, *scope] {
	return step.Controller[*inmemoryv1.InMemoryMachine, *scope]{
		Name: "inmemorymachine",
		New:  func() *inmemoryv1.InMemoryMachine { return &inmemoryv1.InMemoryMachine{} },
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Machine{}, watch.Infrastructure("InMemoryMachine"), watch.Bootstrapped()),
			step.Mapped(&clusterv1.Cluster{}, c.ofCluster, watch.Cluster(watch.Paused, watch.InfrastructureReady)),
			step.Mapped(&inmemoryv1.InMemoryCluster{}, c.ofInfrastructure, opened()),
		},
		Paused: ownership.PausedByCluster[*inmemoryv1.InMemoryMachine](c.Client),
		Scope:  c.scope,
		Steps: []step.Step[*scope]{
			step.Do("owners", c.owners),
			step.Do("prepare", c.prepare).Sets(inmemoryv1.VMProvisionedCondition),
			step.Do("vm", c.vm).Sets(inmemoryv1.VMProvisionedCondition),
			step.Do("node", c.node).Sets(inmemoryv1.NodeProvisionedCondition),
			step.Do("etcd", c.etcd).Sets(inmemoryv1.EtcdProvisionedCondition),
			step.Do("api-server", c.apiServer).Sets(inmemoryv1.APIServerProvisionedCondition),
			step.Do("addons", c.addons),
		},
		Deletion:   []step.Step[*scope]{step.Do("remove", c.remove)},
		Conditions: conditions(),
		// The beginning of the startup is read after a restart of this process.
		Progress: &step.Progress{OnlyFirst: true, Immediate: []string{inmemoryv1.WaitingForStartupTimeoutReason}},
	}
}

// scope is the state that the steps share.
type scope struct {
	obj      *inmemoryv1.InMemoryMachine
	machine  *clusterv1.Machine
	cluster  *clusterv1.Cluster
	group    *cloud.Group
	endpoint *apiserver.Endpoint
	// secret is the name of the Secret with the bootstrap data; empty if it does not exist yet.
	secret string
	// dead is whether a fault takes the machine's power.
	dead bool
	// running is the machine in the cloud, and data its parsed bootstrap data.
	running cloud.Machine
	data    bootstrap.Data
	// externalEtcd is whether etcd does not run on the cluster's machines.
	externalEtcd bool
}

func (s *scope) isControlPlane() bool {
	_, ok := s.machine.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// owners waits for the Machine and its Cluster.
func (c *Controller) owners(_ context.Context, s *scope) (step.Result, error) {
	if s.machine == nil || s.cluster == nil {
		return step.Wait("owner references to a Machine and a Cluster"), nil
	}
	return step.Done(), nil
}

func (c *Controller) scope(ctx context.Context, obj *inmemoryv1.InMemoryMachine) (*scope, error) {
	s := &scope{obj: obj}
	var err error
	if s.machine, err = ownership.MachineOf(ctx, c.Client, obj); err != nil {
		return nil, err
	}
	if s.secret, err = c.bootstrapData(ctx, s.machine); err != nil {
		return nil, err
	}
	s.cluster, err = ownership.ClusterOf(ctx, c.Client, obj)
	return s, err
}

// bootstrapData returns the name of the Secret with the bootstrap data of a Machine, empty if it does not exist yet.
func (c *Controller) bootstrapData(ctx context.Context, m *clusterv1.Machine) (string, error) {
	switch {
	case m == nil:
		return "", nil
	case !c.pools:
		return ptr.Deref(m.Spec.Bootstrap.DataSecretName, ""), nil
	}
	return machinepool.BootstrapData(ctx, c.Client, m)
}

// opened selects InMemoryClusters whose workload cluster was opened: a replacement is empty, and its machines must be
// recreated. It also selects those whose faults change, because a dead machine may continue.
func opened() predicate.Predicate {
	return watch.Updated(func(before, after *inmemoryv1.InMemoryCluster) bool {
		return !before.Status.Ready && after.Status.Ready ||
			before.Annotations[inmemoryv1.FaultsAnnotation] != after.Annotations[inmemoryv1.FaultsAnnotation]
	})
}

// ofPool returns the machines of a MachinePool that may wait for its bootstrap data.
func (c *Controller) ofPool(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &inmemoryv1.InMemoryMachineList{}, func(m *inmemoryv1.InMemoryMachine) bool { return !m.Status.Ready },
		client.InNamespace(obj.GetNamespace()), client.MatchingLabels{clusterv1.MachinePoolNameLabel: naming.LabelValue(obj.GetName())})
}

func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.ofClusterNamed(ctx, client.ObjectKeyFromObject(obj))
}

func (c *Controller) ofInfrastructure(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.ofClusterNamed(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetLabels()[clusterv1.ClusterNameLabel]})
}

func (c *Controller) ofClusterNamed(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
	return watch.Requests(ctx, c.Client, &inmemoryv1.InMemoryMachineList{}, ownership.InCluster(cluster.Namespace, cluster.Name))
}
