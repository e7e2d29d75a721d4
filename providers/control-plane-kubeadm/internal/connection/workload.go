package connection

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/quorum"
)

// Workloads connects to workload clusters.
type Workloads interface {
	// Get returns the workload cluster. Without a connection, the error satisfies remote.IsNotConnected. It never blocks.
	Get(ctx context.Context, cluster types.NamespacedName) (Workload, error)
}

// Workload is what a control plane reads and changes in its workload cluster.
type Workload interface {
	// ConnectedSince returns when this connection was established.
	ConnectedSince() time.Time
	// Nodes lists the Nodes of the control plane, from a cache.
	Nodes(ctx context.Context) ([]corev1.Node, error)
	// Pods lists the static Pods of the control plane, from a cache.
	Pods(ctx context.Context) ([]corev1.Pod, error)
	// KubeadmConfigExists reports whether kubeadm has uploaded its configuration: kubeadm init has completed everything then
	// that other Machines depend on.
	KubeadmConfigExists(ctx context.Context) (bool, error)

	// Etcd queries the etcd members on these Nodes. The result has one entry per Node, including errors.
	Etcd(ctx context.Context, nodes []string) []quorum.Member
	// MoveEtcdLeadership makes the member on Node to the leader if the member on Node from is.
	MoveEtcdLeadership(ctx context.Context, from, to string) error
	// RemoveEtcdMember removes the member with this name through the members on the Nodes via. A member that does not exist is
	// not an error.
	RemoveEtcdMember(ctx context.Context, name string, via []string) error
	// RemoveUnstartedEtcdMembers removes members that were added and have not started, through the members on the Nodes via.
	RemoveUnstartedEtcdMembers(ctx context.Context, via []string) error
	// RevokeToken deletes the bootstrap token with this ID, so that no machine can join with it, and reports whether it existed.
	// Tokens of users are kept.
	RevokeToken(ctx context.Context, id string) (existed bool, err error)

	// PrepareVersion prepares the cluster for Machines with the desired version: RBAC, and the configuration of kubeadm and the
	// kubelet.
	PrepareVersion(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error
	// Maintain updates RBAC, kube-proxy and CoreDNS according to the spec.
	Maintain(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error
	// CertificateExpiry returns when the certificate of the API server on a Node expires.
	CertificateExpiry(ctx context.Context, node string) (time.Time, error)
}
