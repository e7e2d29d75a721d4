package machine

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
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
	Lab    *lab.Lab
	// Kinds are the kinds of the objects.
	Kinds kinds.Set
	// Pools is whether MachinePools exist: their Machines use the pool's bootstrap data.
	Pools bool
}

// conditions declares the conditions that Ready summarizes. While a machine is starting, Ready has a step counter.
func (c *Controller) conditions() condition.Kind {
	worker := []clusterv1.ConditionType{inmemoryv1.VMProvisionedCondition, inmemoryv1.NodeProvisionedCondition}
	all := append(worker[:2:2], inmemoryv1.EtcdProvisionedCondition, inmemoryv1.APIServerProvisionedCondition)
	return condition.Kind{
		Ready: all,
		StepCounter: func(on condition.Getter) ([]clusterv1.ConditionType, bool) {
			obj, ok := on.(step.Object)
			if !ok {
				return nil, false
			}
			m, ok := c.kinds.MachineOf(obj)
			if !ok || m.ProviderID() != "" {
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
	c := &Controller{
		Clients: step.ClientsOf(mgr, o.Kinds.MachineController()+"-controller", o.Filter), kinds: o.Kinds, lab: o.Lab, pools: o.Pools,
	}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Clients, declared)
}

// paused reports whether an object is not reconciled because its Cluster is paused. What runs goes on: after a restart, API server and etcd
// member of a machine that had them are started again.
func (c *Controller) paused(ctx context.Context, obj step.Object) (bool, error) {
	paused, err := ownership.PausedByCluster[step.Object](c.Client)(ctx, obj)
	if err != nil || !paused || !obj.GetDeletionTimestamp().IsZero() {
		return paused, err
	}
	m, ok := c.kinds.MachineOf(obj)
	if !ok || !condition.IsTrue(m.Object, inmemoryv1.APIServerProvisionedCondition) {
		return true, nil
	}
	cluster, err := ownership.ClusterOf(ctx, c.Client, obj)
	if err != nil || cluster == nil {
		return true, err
	}
	endpoint, open := c.lab.Server.Endpoint(client.ObjectKeyFromObject(cluster))
	return open && endpoint.HasServer(m.Name), nil
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[step.Object, *scope] {
	return step.Controller[step.Object, *scope]{
		Name:    c.kinds.MachineController(),
		New:     c.kinds.NewMachine,
		Selects: c.kinds.IsMachine,
		Watches: c.watches(),
		Paused:  c.paused,
		Scope:   c.scope,
		Steps: []step.Step[*scope]{
			step.Do("owners", c.owners),
			step.Do("prepare", c.prepare).Sets(inmemoryv1.VMProvisionedCondition),
			step.Do("command", c.command),
			step.Do("vm", c.vm).Sets(inmemoryv1.VMProvisionedCondition),
			step.Do("node", c.node).Sets(inmemoryv1.NodeProvisionedCondition),
			step.Do("etcd", c.etcd).Sets(inmemoryv1.EtcdProvisionedCondition),
			step.Do("api-server", c.apiServer).Sets(inmemoryv1.APIServerProvisionedCondition),
			step.Do("addons", c.addons),
		},
		Deletion:   []step.Step[*scope]{step.Do("remove", c.remove)},
		Conditions: c.conditions(),
		// The beginning of the startup is read after a restart of this process.
		Progress: &step.Progress{OnlyFirst: true, Immediate: []string{inmemoryv1.WaitingForStartupTimeoutReason}},
	}
}
