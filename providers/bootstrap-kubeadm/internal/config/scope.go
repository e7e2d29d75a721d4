package config

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/external"
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
	// external reads control planes live.
	external external.Reader
}

// scope is what the steps work on.
type scope struct {
	config *bootstrapv1.KubeadmConfig
	// older is the spec in v1beta1 if a client of v1beta1 wrote what v1beta2 does not have. Otherwise, it is empty.
	older bootstrapv1beta1.KubeadmConfigSpec
	// machine or pool owns the config; the other one is nil.
	machine *clusterv1.Machine
	pool    *clusterv1.MachinePool
	cluster *clusterv1.Cluster
	// restored is what fills etcd's data directory before kubeadm init runs; nil for none. The step initialize reads it.
	restored *bootstrapdata.Restore
	// hash is that of the config of a pool, see specHash.
	hash string
	// authorities describes the certificates of CAs in the data of a control plane Machine, see fleetv1.AuthoritiesAnnotation.
	authorities string
}

// newScope returns the scope of a config, without its owner.
func newScope(ctx context.Context, config *bootstrapv1.KubeadmConfig) (*scope, error) {
	older := &bootstrapv1beta1.KubeadmConfig{}
	_, err := conversion.Older(ctx, config, older)
	return &scope{config: config, older: older.Spec}, err
}

func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.cluster) }

func (s *scope) ready() bool { return ready(s.config) }

// ready reports whether the data of a config is stored.
func ready(config *bootstrapv1.KubeadmConfig) bool {
	return ptr.Deref(config.Status.Initialization.DataSecretCreated, false)
}

func (s *scope) initialized() bool {
	return condition.IsTrue(s.cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition)
}
