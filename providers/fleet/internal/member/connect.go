package member

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/etcd"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/portforward"
	"sigs.k8s.io/cluster-api/sdk/remote"
)

// port is the client port of etcd in the static Pods of kubeadm.
const port = 2379

// ErrNotSupported is matched by the error for control planes whose etcd cannot be reached: waiting does not help.
var ErrNotSupported = errors.New("only control planes of kubeadm with etcd on their Machines are supported")

// Connector connects to control planes.
type Connector struct {
	// Management reads Machines and Secrets, from the API server.
	Management client.Reader
	// Remote configures connections to workload clusters.
	Remote remote.Options
	Clock  clock.WithTickerAndDelayedExecution
}

// Etcd is the etcd of a control plane, while it is in use.
type Etcd struct {
	nodes   []string
	members *etcd.Cluster
	cluster *remote.Cluster
}

// Connect prepares the connection to the etcd of a Cluster. Nothing is sent to the workload cluster yet. Close it after use.
func (c *Connector) Connect(ctx context.Context, cluster types.NamespacedName) (*Etcd, error) {
	nodes, err := c.nodes(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if err := c.stacked(ctx, cluster); err != nil {
		return nil, err
	}
	connection, err := c.Dial(ctx, cluster)
	if err != nil {
		return nil, err
	}
	forward, err := portforward.New(connection.Config, connection.Dialer)
	if err != nil {
		connection.Close()
		return nil, err
	}
	return &Etcd{
		nodes: nodes, cluster: connection,
		members: etcd.New(etcd.Options{
			Dial: func(ctx context.Context, node string) (net.Conn, error) {
				return forward.Dial(ctx, types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "etcd-" + node}, port)
			},
			Identity: &etcd.Identity{Secrets: c.Management, Cluster: cluster, Clock: c.Clock},
			Clock:    c.Clock,
		}),
	}, nil
}

// Dial prepares a connection to the API server of a Cluster. Nothing is sent yet, and nothing is cached. Close it after use.
func (c *Connector) Dial(ctx context.Context, cluster types.NamespacedName) (*remote.Cluster, error) {
	secret := &corev1.Secret{}
	key := pki.SecretKey(cluster, pki.Kubeconfig)
	if err := c.Management.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig, Secret %s: %w", key, err)
	}
	o := c.Remote
	o.Clock = c.Clock
	connection, err := remote.Dial(ctx, secret.Data[pki.KubeconfigKey], o)
	if err != nil {
		return nil, fmt.Errorf("using the kubeconfig, Secret %s: %w", key, err)
	}
	return connection, nil
}

// Close ends all connections.
func (e *Etcd) Close() {
	e.members.Close()
	e.cluster.Close()
}

// nodes returns the names of the Nodes of the control plane Machines, sorted.
func (c *Connector) nodes(ctx context.Context, cluster types.NamespacedName) ([]string, error) {
	machines := &clusterv1.MachineList{}
	if err := c.Management.List(ctx, machines, client.InNamespace(cluster.Namespace), client.HasLabels{clusterv1.MachineControlPlaneLabel},
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}); err != nil {
		return nil, fmt.Errorf("listing the control plane Machines: %w", err)
	}
	var nodes []string
	for i := range machines.Items {
		if m := &machines.Items[i]; m.Status.NodeRef.IsDefined() && m.DeletionTimestamp.IsZero() {
			nodes = append(nodes, m.Status.NodeRef.Name)
		}
	}
	slices.Sort(nodes)
	if len(machines.Items) == 0 {
		return nil, fmt.Errorf("%w: Cluster %s has no control plane Machines", ErrNotSupported, cluster.Name)
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("no control plane Machine of Cluster %s has a Node", cluster.Name)
	}
	return nodes, nil
}

// stacked returns an error if etcd has no CA, as in control planes that are not kubeadm's. External etcd has one without a key.
func (c *Connector) stacked(ctx context.Context, cluster types.NamespacedName) error {
	secret := &corev1.Secret{}
	key := pki.SecretKey(cluster, pki.EtcdCA)
	err := c.Management.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: Secret %s with the CA of etcd does not exist", ErrNotSupported, key)
	case err != nil:
		return fmt.Errorf("reading the etcd CA, Secret %s: %w", key, err)
	}
	return nil
}
