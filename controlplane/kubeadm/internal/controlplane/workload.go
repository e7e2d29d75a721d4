package controlplane

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
)

// Workloads connects to workload clusters.
type Workloads interface {
	// Get is the workload cluster, or an error for which remote.IsNotConnected holds while there is no connection. It
	// never blocks.
	Get(ctx context.Context, cluster types.NamespacedName) (Workload, error)
}

// Workload is what a control plane reads and does in its workload cluster.
type Workload interface {
	// Nodes are the control plane's Nodes, from a cache.
	Nodes(ctx context.Context) ([]corev1.Node, error)
	// Pods are the static Pods of the control plane, from a cache.
	Pods(ctx context.Context) ([]corev1.Pod, error)
	// KubeadmConfigExists says whether kubeadm has uploaded its configuration: then kubeadm init is through with all
	// that others depend on.
	KubeadmConfigExists(ctx context.Context) (bool, error)

	// Etcd asks the members on these Nodes. It has one entry per Node, errors included.
	Etcd(ctx context.Context, nodes []string) []EtcdMember
	// MoveEtcdLeadership makes the member on one Node the leader if the member on the other is.
	MoveEtcdLeadership(ctx context.Context, from, to string) error
	// RemoveEtcdMember removes the member of this name, asking the members on the Nodes via. A member that is gone
	// already is no error.
	RemoveEtcdMember(ctx context.Context, name string, via []string) error

	// RemoveUnstartedEtcdMembers removes members that were added and have not started, asking the members on the Nodes
	// via.
	RemoveUnstartedEtcdMembers(ctx context.Context, via []string) error

	// PrepareVersion makes the cluster ready for Machines as the control plane asks for now: RBAC and kubeadm's and the
	// kubelet's configuration.
	PrepareVersion(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error
	// Maintain keeps RBAC, kube-proxy and CoreDNS as the control plane asks for.
	Maintain(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error
	// CertificateExpiry is when the certificate of the API server on a Node expires.
	CertificateExpiry(ctx context.Context, node string) (time.Time, error)
}

// EtcdMember is what the member of etcd on one Node says.
type EtcdMember struct {
	// Node is the Node that was asked.
	Node string
	// Err is why there is no answer; the rest is empty then.
	Err error
	// ClusterID is the cluster the member belongs to.
	ClusterID uint64
	// Name is the member's own name, which is that of its Node.
	Name string
	// Leader says that it leads.
	Leader bool
	// Members are the names of all members it knows, sorted; empty names belong to members that have not started yet.
	Members []string
	// Alarms are the alarms of this member.
	Alarms []string
}
