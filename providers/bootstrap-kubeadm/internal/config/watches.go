package config

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.configs(ctx, client.ObjectKeyFromObject(obj), func(*bootstrapv1.KubeadmConfig) bool { return true })
}

// waitingFor returns the configs of a cluster that may need its API server for a token: those without data, those of MachinePools, and
// those whose machine has not joined, because its token may have expired while no manager was running.
func (c *Controller) waitingFor(ctx context.Context, cluster types.NamespacedName) []reconcile.Request {
	return c.configs(ctx, cluster, func(config *bootstrapv1.KubeadmConfig) bool {
		return !ready(config) || !c.joined(ctx, config)
	})
}

func (c *Controller) configs(
	ctx context.Context, cluster types.NamespacedName, matters func(*bootstrapv1.KubeadmConfig) bool,
) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &bootstrapv1.KubeadmConfigList{}, matters, ownership.InCluster(cluster.Namespace, cluster.Name))
}
