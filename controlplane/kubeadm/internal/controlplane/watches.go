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

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/provider/remote"
)

// watches name the control plane that an event concerns.
type watches struct {
	reader client.Reader
}

func (w watches) ofCluster(_ context.Context, obj client.Object) []reconcile.Request {
	cluster, ok := obj.(*clusterv1.Cluster)
	if !ok || cluster.Spec.ControlPlaneRef == nil || cluster.Spec.ControlPlaneRef.Kind != "KubeadmControlPlane" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Spec.ControlPlaneRef.Name}}}
}

func (w watches) ofKey(ctx context.Context, key types.NamespacedName) []reconcile.Request {
	cluster := &clusterv1.Cluster{}
	if err := w.reader.Get(ctx, key, cluster); err != nil {
		return nil
	}
	return w.ofCluster(ctx, cluster)
}

// ofMachine: the last worker to go lets a control plane that is being deleted go on.
func (w watches) ofMachine(ctx context.Context, obj client.Object) []reconcile.Request {
	m, ok := obj.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	return w.ofKey(ctx, types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ClusterName})
}

func (w watches) ofPool(ctx context.Context, obj client.Object) []reconcile.Request {
	pool, ok := obj.(*clusterv1.MachinePool)
	if !ok {
		return nil
	}
	return w.ofKey(ctx, types.NamespacedName{Namespace: pool.Namespace, Name: pool.Spec.ClusterName})
}

// ofAuthority: kubeconfigs follow the certificate authority of the cluster.
func (w watches) ofAuthority(ctx context.Context, obj client.Object) []reconcile.Request {
	cluster, isAuthority := strings.CutSuffix(obj.GetName(), "-"+string(pki.ClusterCA))
	if !isAuthority || obj.GetLabels()[clusterv1.ClusterNameLabel] != cluster {
		return nil
	}
	return w.ofKey(ctx, types.NamespacedName{Namespace: obj.GetNamespace(), Name: cluster})
}

// replaced reports whether a Secret has another content than before.
func replaced(before, after *corev1.Secret) bool {
	return !maps.EqualFunc(before.Data, after.Data, bytes.Equal)
}

// remote: connections, control plane Nodes and their Pods.
func (w watches) remote() remote.Events {
	requests := func(ctx context.Context, cluster types.NamespacedName, obj client.Object) []reconcile.Request {
		if node, ok := obj.(*corev1.Node); ok && !isControlPlane(node) {
			return nil
		}
		return w.ofKey(ctx, cluster)
	}
	return remote.Events{
		Connection: w.ofKey,
		Watches: []remote.Watch{
			{Object: &corev1.Node{}, Requests: requests, Changed: nodeChanged},
			{Object: &corev1.Pod{}, Requests: requests, Changed: podChanged},
		},
	}
}

func isControlPlane(node *corev1.Node) bool {
	_, ok := node.Labels["node-role.kubernetes.io/control-plane"]
	return ok
}

// nodeChanged says whether an update of a Node matters: heartbeats do not.
func nodeChanged(before, after client.Object) bool {
	a, aok := before.(*corev1.Node)
	b, bok := after.(*corev1.Node)
	return !aok || !bok || nodeReady(a) != nodeReady(b) || unreachable(a) != unreachable(b) || isControlPlane(a) != isControlPlane(b)
}

// podChanged says whether an update of a static Pod changes what is said of it.
func podChanged(before, after client.Object) bool {
	a, aok := before.(*corev1.Pod)
	b, bok := after.(*corev1.Pod)
	return !aok || !bok || a.Status.Phase != b.Status.Phase || podReady(a) != podReady(b) || crashing(a) != crashing(b)
}
