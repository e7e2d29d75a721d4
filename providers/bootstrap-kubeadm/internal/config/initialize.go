package config

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/kubeadmtypes"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// backstop is the interval at which a config is reconciled while the lock or the name of its data is taken, or the cluster has no
// kubeconfig or CA: Secrets and the holders of locks are not watched.
const backstop = 30 * time.Second

// initialize generates the data that initializes a control plane, for the Machine that gets the lock.
func (c *Controller) initialize(ctx context.Context, s *scope) (step.Result, error) {
	if s.ready() || s.initialized() && !s.restores() {
		return step.Done(), nil
	}
	if result, err := c.restore(ctx, s); err != nil || result.Ends() {
		return result, err
	}
	if s.initialized() {
		// The lock is about who founds a cluster that has not been initialized. That of an earlier Machine may be left.
		return c.finishInit(ctx, s)
	}
	if !s.isControlPlane() || !s.canInitialize() {
		return awaitControlPlane(s, 0, "the control plane of Cluster "+s.cluster.Name+" to be initialized"), nil
	}
	heldBy, err := c.locks.acquire(ctx, c.Clients, s.cluster, s.machine.Name)
	if err != nil {
		return step.Done(), err
	}
	if heldBy != s.machine.Name {
		return awaitControlPlane(s, backstop, "the init lock, held by Machine "+strconv.Quote(heldBy)), nil
	}
	if first, err := c.first(ctx, s); err != nil {
		return step.Done(), err
	} else if !first {
		return awaitControlPlane(s, backstop, "Cluster "+s.cluster.Name+" to be up to date in the cache"), nil
	}
	return c.finishInit(ctx, s)
}

// finishInit generates the data of the Machine that initializes a control plane.
func (c *Controller) finishInit(ctx context.Context, s *scope) (step.Result, error) {
	return c.finish(ctx, s, func() ([]byte, error) {
		config, cluster := clusterConfiguration(s)
		certificates, err := c.certificates(ctx, s, kubeadm.Defined(config.Etcd.External), true)
		if err != nil {
			return nil, err
		}
		cluster.EncryptionAlgorithm = algorithm(certificates)
		initialize := s.initConfiguration().DeepCopy()
		additional, err := initBundle(s, certificates, initialize)
		if err != nil {
			return nil, err
		}
		text, err := kubeadmtypes.Init(config, initialize, cluster, cluster.Version)
		if err != nil {
			return nil, mistake{err}
		}
		in, err := c.input(ctx, s, append(certificates, additional...), text)
		if err != nil {
			return nil, err
		}
		in.Restore = s.restored
		return renderInit(ctx, s, in)
	})
}

// first reports, for the Machine that holds the lock, whether the control plane must be initialized. It reads the
// Cluster live, once per cluster: a lock is released when the control plane is initialized, so with a stale Cluster any
// Machine could take it again. If the control plane is initialized, the lock is released.
func (c *Controller) first(ctx context.Context, s *scope) (bool, error) {
	live := &clusterv1.Cluster{}
	err := c.Live.Get(ctx, s.key(), live)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Cluster %s: %w", s.cluster.Name, err)
	}
	if err == nil && live.UID == s.cluster.UID && !condition.IsTrue(live, clusterv1.ControlPlaneInitializedV1Beta1Condition) {
		return true, nil
	}
	return false, c.locks.drop(ctx, c.Clients, s.cluster)
}

// awaitControlPlane sets the condition for a Machine whose data requires an initialized control plane.
func awaitControlPlane(s *scope, atMost time.Duration, what string) step.Result {
	condition.Set(s.config, condition.False(bootstrapv1.DataSecretAvailableV1Beta1Condition, clusterv1.ConditionSeverityInfo,
		bootstrapv1.WaitingForControlPlaneAvailableV1Beta1Reason, ""))
	return step.WaitAtMost(atMost, what)
}

// canInitialize reports whether a config has the configuration to initialize a control plane, which may be empty in v1beta1.
func (s *scope) canInitialize() bool {
	return kubeadm.Defined(s.config.Spec.InitConfiguration) || kubeadm.Defined(s.config.Spec.ClusterConfiguration) ||
		s.older.InitConfiguration != nil || s.older.ClusterConfiguration != nil
}

// clusterConfiguration returns what kubeadm init must know of the cluster. It is from the Cluster and the Machine, unless the config has
// it. Most of that only clients of v1beta1 can set.
func clusterConfiguration(s *scope) (*bootstrapv1.ClusterConfiguration, kubeadmtypes.Cluster) {
	config, network := s.config.Spec.ClusterConfiguration.DeepCopy(), s.cluster.Spec.ClusterNetwork
	if config.ControlPlaneEndpoint == "" && s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		config.ControlPlaneEndpoint = s.cluster.Spec.ControlPlaneEndpoint.String()
	}
	older := ptr.Deref(s.older.ClusterConfiguration, bootstrapv1beta1.ClusterConfiguration{})
	return config, kubeadmtypes.Cluster{
		Name:          cmp.Or(older.ClusterName, s.cluster.Name),
		Version:       cmp.Or(older.KubernetesVersion, s.machine.Spec.Version),
		ServiceSubnet: cmp.Or(older.Networking.ServiceSubnet, network.Services.String()),
		PodSubnet:     cmp.Or(older.Networking.PodSubnet, network.Pods.String()),
		DNSDomain:     cmp.Or(older.Networking.DNSDomain, network.ServiceDomain),
	}
}

// algorithm returns the algorithm of the cluster CA's key, empty if it is unknown: kubeadm generates its keys with the same.
func algorithm(certificates []bootstrapv1.File) string {
	for _, f := range certificates {
		if f.Path != paths[pki.ClusterCA][0] {
			continue
		}
		if ca, err := pki.ParseCA([]byte(f.Content), nil); err == nil {
			return string(pki.AlgorithmOf(ca.Certificate))
		}
	}
	return ""
}
