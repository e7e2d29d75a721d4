package cluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

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
