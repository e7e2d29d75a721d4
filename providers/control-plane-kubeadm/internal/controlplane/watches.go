package controlplane

import (
	"bytes"
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// indexes returns the indexes of the cache that the controller reads by.
func (c *Controller) indexes() []step.Index {
	all := []step.Index{{Object: &clusterv1.Machine{}, Field: snapshot.ClusterIndex, Values: snapshot.ByCluster}}
	if c.watchesPools {
		all = append(all, step.Index{Object: &clusterv1.MachinePool{}, Field: snapshot.ClusterIndex, Values: snapshot.ByCluster})
	}
	return all
}

// watches returns the watches of the management cluster.
func (c *Controller) watches() []step.Watch {
	all := []step.Watch{
		step.Owned(&clusterv1.Machine{}),
		step.Mapped(&clusterv1.Cluster{}, c.ofCluster),
		step.Mapped(&clusterv1.Machine{}, c.ofWorker, watch.Deleted()),
		step.Mapped(&corev1.Secret{}, c.ofClusterCA, watch.Updated(dataChanged)),
	}
	if c.watchesPools {
		all = append(all, step.Mapped(&clusterv1.MachinePool{}, c.ofPool, watch.Deleted()))
	}
	return all
}

func (c *Controller) ofCluster(_ context.Context, obj client.Object) []reconcile.Request {
	cluster, ok := obj.(*clusterv1.Cluster)
	if !ok || cluster.Spec.ControlPlaneRef.Kind != "KubeadmControlPlane" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Spec.ControlPlaneRef.Name}}}
}

func (c *Controller) ofKey(ctx context.Context, key types.NamespacedName) []reconcile.Request {
	cluster := &clusterv1.Cluster{}
	if err := c.Client.Get(ctx, key, cluster); err != nil {
		return nil
	}
	return c.ofCluster(ctx, cluster)
}

// ofWorker is for deleted workers: a control plane that is being deleted waits for them.
func (c *Controller) ofWorker(ctx context.Context, obj client.Object) []reconcile.Request {
	m, ok := obj.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	return c.ofKey(ctx, types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ClusterName})
}

func (c *Controller) ofPool(ctx context.Context, obj client.Object) []reconcile.Request {
	pool, ok := obj.(*clusterv1.MachinePool)
	if !ok {
		return nil
	}
	return c.ofKey(ctx, types.NamespacedName{Namespace: pool.Namespace, Name: pool.Spec.ClusterName})
}

// ofClusterCA is for changes of the cluster CA, which the kubeconfig depends on.
func (c *Controller) ofClusterCA(ctx context.Context, obj client.Object) []reconcile.Request {
	cluster, isCA := strings.CutSuffix(obj.GetName(), "-"+string(pki.ClusterCA))
	if !isCA || obj.GetLabels()[clusterv1.ClusterNameLabel] != cluster {
		return nil
	}
	return c.ofKey(ctx, types.NamespacedName{Namespace: obj.GetNamespace(), Name: cluster})
}

// dataChanged reports whether the data of a Secret has changed.
func dataChanged(before, after *corev1.Secret) bool {
	return !maps.EqualFunc(before.Data, after.Data, bytes.Equal)
}

// workloadEvents returns the watches in workload clusters: connections, control plane Nodes and their Pods.
func (c *Controller) workloadEvents() remote.Events {
	requests := func(ctx context.Context, cluster types.NamespacedName, obj client.Object) []reconcile.Request {
		if node, ok := obj.(*corev1.Node); ok && !isControlPlane(node) {
			return nil
		}
		return c.ofKey(ctx, cluster)
	}
	return remote.Events{
		Connection: c.ofKey,
		Watches: []remote.Watch{
			{Object: &corev1.Node{}, Requests: requests, Changed: nodeChanged},
			{Object: &corev1.Pod{}, Requests: requests, Changed: podChanged},
		},
	}
}

func isControlPlane(node *corev1.Node) bool {
	_, ok := node.Labels[snapshot.NodeRole]
	return ok
}

// nodeChanged reports whether an update of a Node is relevant. Heartbeats are not.
func nodeChanged(before, after client.Object) bool {
	a, aok := before.(*corev1.Node)
	b, bok := after.(*corev1.Node)
	return !aok || !bok || health.NodeReady(a) != health.NodeReady(b) || health.Unreachable(a) != health.Unreachable(b) ||
		isControlPlane(a) != isControlPlane(b)
}

// podChanged reports whether an update of a static Pod changes its health.
func podChanged(before, after client.Object) bool {
	a, aok := before.(*corev1.Pod)
	b, bok := after.(*corev1.Pod)
	return !aok || !bok || a.Status.Phase != b.Status.Phase || health.PodReady(a) != health.PodReady(b) ||
		health.Crashing(a) != health.Crashing(b)
}
