package config

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/kubeadmtypes"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// backstop is the interval at which a config is reconciled while the lock or the name of its data is taken, or the cluster has no
// kubeconfig or CA: Secrets and the holders of locks are not watched.
const backstop = 30 * time.Second

// initialize generates the data that initializes a control plane, for the Machine that gets the lock.
func (c *Controller) initialize(ctx context.Context, s *scope) (step.Result, error) {
	if s.config.Status.Ready || s.initialized() {
		return step.Done(), nil
	}
	spec := s.config.Spec.DeepCopy()
	if !s.isControlPlane() || !canInitialize(spec) {
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
	if spec.InitConfiguration == nil {
		spec.InitConfiguration = &bootstrapv1.InitConfiguration{}
	}
	if spec.ClusterConfiguration == nil {
		spec.ClusterConfiguration = &bootstrapv1.ClusterConfiguration{}
	}
	completeCluster(spec.ClusterConfiguration, s)
	return c.finish(ctx, s, func() ([]byte, error) {
		certificates, err := c.certificates(ctx, s, spec.ClusterConfiguration.Etcd.External != nil, true)
		if err != nil {
			return nil, err
		}
		kubeadm, err := kubeadmtypes.Init(spec.ClusterConfiguration, spec.InitConfiguration,
			kubeadmtypes.Extra{EncryptionAlgorithm: algorithm(certificates)}, spec.ClusterConfiguration.KubernetesVersion)
		if err != nil {
			return nil, mistake{err}
		}
		in, err := c.input(ctx, s, certificates, kubeadm)
		if err != nil {
			return nil, err
		}
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
	if err == nil && live.UID == s.cluster.UID && !condition.IsTrue(live, clusterv1.ControlPlaneInitializedCondition) {
		return true, nil
	}
	return false, c.locks.drop(ctx, c.Clients, s.cluster)
}

// awaitControlPlane sets the condition for a Machine whose data requires an initialized control plane.
func awaitControlPlane(s *scope, atMost time.Duration, what string) step.Result {
	condition.Set(s.config, condition.False(bootstrapv1.DataSecretAvailableCondition, clusterv1.ConditionSeverityInfo,
		bootstrapv1.WaitingForControlPlaneAvailableReason, ""))
	return step.WaitAtMost(atMost, what)
}

// canInitialize reports whether a config has the configuration to initialize a control plane.
func canInitialize(spec *bootstrapv1.KubeadmConfigSpec) bool {
	return spec.InitConfiguration != nil || spec.ClusterConfiguration != nil
}

// completeCluster sets fields that are empty in the config from the Cluster and the Machine.
func completeCluster(config *bootstrapv1.ClusterConfiguration, s *scope) {
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&config.ClusterName, s.cluster.Name)
	if s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		fill(&config.ControlPlaneEndpoint, s.cluster.Spec.ControlPlaneEndpoint.String())
	}
	if network := s.cluster.Spec.ClusterNetwork; network != nil {
		fill(&config.Networking.DNSDomain, network.ServiceDomain)
		if network.Services != nil {
			fill(&config.Networking.ServiceSubnet, network.Services.String())
		}
		if network.Pods != nil {
			fill(&config.Networking.PodSubnet, network.Pods.String())
		}
	}
	if s.machine.Spec.Version != nil {
		fill(&config.KubernetesVersion, *s.machine.Spec.Version)
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
