package config

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// kubeadmConfigKind is the kind that this package reconciles.
const kubeadmConfigKind = "KubeadmConfig"

// Workloads returns connections to workload clusters.
type Workloads interface {
	Get(ctx context.Context, cluster types.NamespacedName) (*remote.Cluster, error)
}

// Controller reconciles KubeadmConfigs.
type Controller struct {
	step.Clients
	// cached only reads from the cache: missing Secrets cost no request.
	cached    client.Reader
	workloads Workloads
	// ignition allows the format ignition.
	ignition bool
	// pools allows configs of MachinePools.
	pools    bool
	tokenTTL time.Duration
	keys     *pki.Keys
	locks    locks
}

// scope is what the steps work on.
type scope struct {
	config *bootstrapv1.KubeadmConfig
	// machine or pool owns the config; the other one is nil.
	machine *clusterv1.Machine
	pool    *clusterv1.MachinePool
	cluster *clusterv1.Cluster
}

func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.cluster) }

func (s *scope) initialized() bool {
	return condition.IsTrue(s.cluster, clusterv1.ControlPlaneInitializedCondition)
}
