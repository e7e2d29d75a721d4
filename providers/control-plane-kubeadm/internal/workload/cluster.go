package workload

import (
	"context"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/internal/etcd"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/remote"
)

// Cluster is a workload cluster, for the lifetime of one connection to it.
type Cluster struct {
	// Client reads Nodes and Pods from the cache, everything else live.
	Client client.Client

	connection *remote.Cluster
	since      time.Time
	forward    func(ctx context.Context, pod types.NamespacedName, port int) (net.Conn, error)
	etcd       *etcd.Cluster
	clock      clock.PassiveClock
	verified   verified
}

var _ connection.Workload = (*Cluster)(nil)

// ConnectedSince implements connection.Workload.
func (c *Cluster) ConnectedSince() time.Time { return c.since }

// Nodes implements connection.Workload.
func (c *Cluster) Nodes(ctx context.Context) ([]corev1.Node, error) {
	nodes := &corev1.NodeList{}
	if err := c.Client.List(ctx, nodes, client.HasLabels{snapshot.NodeRole}); err != nil {
		return nil, err
	}
	return nodes.Items, nil
}

// Pods implements connection.Workload.
func (c *Cluster) Pods(ctx context.Context) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := c.Client.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem),
		client.MatchingLabels{tierLabel: controlPlaneTier}); err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// KubeadmConfigExists implements connection.Workload.
func (c *Cluster) KubeadmConfigExists(ctx context.Context) (bool, error) {
	err := c.Client.Get(ctx, kubeadmConfig, &corev1.ConfigMap{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// verified remembers what has been verified over this connection.
type verified struct {
	mu   sync.Mutex
	seen map[string]string
}

// is reports whether state was last verified under this name.
func (v *verified) is(name, state string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	last, seen := v.seen[name]
	return seen && last == state
}

func (v *verified) set(name, state string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen == nil {
		v.seen = map[string]string{}
	}
	v.seen[name] = state
}
