package machine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/machinepool"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// watches returns what changes machines. MachinePools exist only if their feature is enabled.
func (c *Controller) watches() []step.Watch {
	all := []step.Watch{
		step.Mapped(&clusterv1.Machine{}, watch.Infrastructure(c.kinds.MachineKind), watch.Bootstrapped()),
		step.Mapped(&clusterv1.Cluster{}, c.ofCluster, watch.Cluster(watch.Paused, watch.InfrastructureReady)),
		step.Mapped(c.kinds.NewCluster(), c.ofInfrastructure, c.opened()),
	}
	if c.pools {
		all = append(all, step.Mapped(&clusterv1.MachinePool{}, c.ofPool, machinepool.Bootstrapped()))
	}
	return all
}

// opened selects infrastructure of clusters whose workload cluster was opened: a replacement is empty, and its machines must be
// recreated. It also selects those whose faults change, because a dead machine may continue.
func (c *Controller) opened() predicate.Predicate {
	return watch.Updated(func(old, current client.Object) bool {
		before, is := c.kinds.ClusterOf(old)
		after, remains := c.kinds.ClusterOf(current)
		return is && remains && (!before.Ready() && after.Ready() ||
			before.Annotations[inmemoryv1.FaultsAnnotation] != after.Annotations[inmemoryv1.FaultsAnnotation])
	})
}

// ofPool returns the machines of a MachinePool that may wait for its bootstrap data.
func (c *Controller) ofPool(ctx context.Context, obj client.Object) []reconcile.Request {
	waits := func(obj client.Object) bool {
		m, ok := c.kinds.MachineOf(obj)
		return ok && !m.Ready()
	}
	return watch.RequestsFor(ctx, c.Client, c.kinds.Machines(), waits,
		client.InNamespace(obj.GetNamespace()), client.MatchingLabels{clusterv1.MachinePoolNameLabel: naming.LabelValue(obj.GetName())})
}

func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.ofClusterNamed(ctx, client.ObjectKeyFromObject(obj))
}

func (c *Controller) ofInfrastructure(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.ofClusterNamed(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetLabels()[clusterv1.ClusterNameLabel]})
}

func (c *Controller) ofClusterNamed(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
	return watch.Requests(ctx, c.Client, c.kinds.Machines(), ownership.InCluster(cluster.Namespace, cluster.Name))
}
