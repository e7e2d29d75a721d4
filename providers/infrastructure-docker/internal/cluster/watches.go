package cluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// all returns requests for all objects, after the container runtime may have been unavailable: what failed is attempted again.
func (c *Controller) all(ctx context.Context) []reconcile.Request {
	c.jobs.RetryAll()
	return watch.Requests(ctx, c.Client, c.kinds.Clusters())
}

// named returns the objects of Clusters of a name if the container has the name of their load balancers.
func (c *Controller) named(ctx context.Context, cluster, container string) []reconcile.Request {
	if cluster == "" || container != identity.LoadBalancerContainer(cluster) {
		return nil
	}
	return watch.Requests(ctx, c.Client, c.kinds.Clusters(), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
}

// ofMachine maps an infrastructure machine or Machine to the object of its Cluster.
func (c *Controller) ofMachine(ctx context.Context, obj client.Object) []reconcile.Request {
	cluster, err := ownership.ClusterOf(ctx, c.Client, obj)
	if err != nil || cluster == nil {
		return nil // Without its Cluster, there is no load balancer.
	}
	return watch.Infrastructure(c.kinds.ClusterKind)(ctx, cluster)
}

// backendChanged selects events of machines that change the configuration, or that lost their registration.
func (c *Controller) backendChanged() predicate.Predicate {
	updated := watch.Updated(func(old, current client.Object) bool {
		before, ok := c.kinds.MachineOf(old)
		if !ok {
			return false
		}
		after, ok := c.kinds.MachineOf(current)
		return ok && backendDiffers(before, after)
	})
	return predicate.Or(watch.Created(), watch.Deleted(), updated)
}

// backendDiffers reports whether an update of a machine changes the configuration, or takes its registration.
func backendDiffers(before, after kinds.Machine) bool {
	return addressOf(before, false) != addressOf(after, false) || addressOf(before, true) != addressOf(after, true) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		before.LoadBalancerConfigured && !after.LoadBalancerConfigured && after.DeletionTimestamp.IsZero()
}

// controlPlaneLeaves selects the beginning of the deletion of a control plane Machine.
func controlPlaneLeaves() predicate.Predicate {
	return watch.Updated(func(before, after *clusterv1.Machine) bool {
		_, controlPlane := after.Labels[clusterv1.MachineControlPlaneLabel]
		return controlPlane && before.DeletionTimestamp.IsZero() && !after.DeletionTimestamp.IsZero()
	})
}
