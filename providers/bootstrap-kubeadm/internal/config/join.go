package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/kubeadmtypes"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// join generates the data that joins a machine to an initialized control plane.
func (c *Controller) join(ctx context.Context, s *scope) (step.Result, error) {
	if s.ready() || !s.initialized() || s.restores() {
		return step.Done(), nil
	}
	join, err := joinConfiguration(s)
	if err != nil {
		return step.Done(), c.failed(s, err)
	}
	files, err := c.discoveryFile(ctx, s, join)
	if err == nil {
		err = c.discovery(ctx, s, join, tokenID(s.config.UID))
	}
	if err != nil {
		if errors.As(err, &mistake{}) {
			return step.Done(), c.failed(s, err)
		}
		if remote.IsNotConnected(err) {
			// A connection triggers a reconcile, but the creation of a kubeconfig Secret does not.
			return awaitControlPlane(s, backstop, err.Error()), nil
		}
		if errors.As(err, &untrusted{}) {
			condition.Set(s.config, condition.False(bootstrapv1.CertificatesAvailableV1Beta1Condition, clusterv1.ConditionSeverityError,
				bootstrapv1.CertificatesCorruptedV1Beta1Reason, "%s", err))
			return awaitControlPlane(s, backstop, err.Error()), nil
		}
		return step.Done(), err
	}
	result, err := c.finish(ctx, s, func() ([]byte, error) { return c.joinData(ctx, s, join, files) })
	if err != nil || result.Ends() {
		return result, err
	}
	return step.Again(c.tokenTTL / 3), nil
}

// joinConfiguration returns the configuration of the spec, without discovery.
func joinConfiguration(s *scope) (*bootstrapv1.JoinConfiguration, error) {
	join := s.config.Spec.JoinConfiguration.DeepCopy()
	if s.isControlPlane() {
		if join.ControlPlane == nil {
			join.ControlPlane = &bootstrapv1.JoinControlPlane{}
		}
		if join.Timeouts.ControlPlaneComponentHealthCheckSeconds == nil {
			join.Timeouts.ControlPlaneComponentHealthCheckSeconds = recordedTimeout(s)
		}
		return join, nil
	}
	if join.ControlPlane != nil {
		return nil, mistake{fmt.Errorf(
			"spec.joinConfiguration.controlPlane is set, but %s is a worker: remove it, or label a Machine of the control plane %s",
			s.ownerName(), clusterv1.MachineControlPlaneLabel)}
	}
	taintUninitialized(join)
	join.Timeouts.ControlPlaneComponentHealthCheckSeconds = nil // It does not wait for a control plane.
	return join, nil
}

// joinData renders the data. files are written beside the certificates.
func (c *Controller) joinData(
	ctx context.Context, s *scope, join *bootstrapv1.JoinConfiguration, files []bootstrapv1.File,
) ([]byte, error) {
	var certificates []bootstrapv1.File
	if s.isControlPlane() {
		external, err := c.externalEtcd(ctx, s)
		if err != nil {
			return nil, err
		}
		if certificates, err = c.certificates(ctx, s, external, false); err != nil {
			return nil, err
		}
	}
	version, path := s.version()
	if version == "" {
		return nil, mistake{fmt.Errorf("%s has no %s, which kubeadm's configuration depends on", s.ownerName(), path)}
	}
	additional, err := c.joinBundle(s, certificates, join, version)
	if err != nil {
		return nil, err
	}
	files = append(files, additional...)
	text, err := kubeadmtypes.Join(join, version)
	if err != nil {
		return nil, mistake{err}
	}
	in, err := c.input(ctx, s, append(certificates, files...), text)
	if err != nil {
		return nil, err
	}
	return renderJoin(ctx, s, in)
}

// recordedTimeout returns the timeout for the components of a control plane that a KubeadmControlPlane has recorded on its Machine; nil is
// kubeadm's default. It is in the ClusterConfiguration in v1beta1, which configs of Machines that join do not have.
func recordedTimeout(s *scope) *int32 {
	recorded := &bootstrapv1beta1.ClusterConfiguration{}
	err := json.Unmarshal([]byte(s.machine.Annotations[controlplanev1beta1.KubeadmClusterConfigurationAnnotation]), recorded)
	timeout := recorded.APIServer.TimeoutForControlPlane
	if err != nil || timeout == nil || kubeadm.Defined(s.config.Spec.ClusterConfiguration) {
		return nil // If it is missing, or invalid, it is not worth failing.
	}
	return ptr.To(int32(min(timeout.Seconds(), math.MaxInt32)))
}

// externalEtcd reports whether the cluster has external etcd. The config of a machine that joins does not have to
// specify it; it follows from the client certificate, which users must provide for external etcd, and from an etcd CA
// without a key.
func (c *Controller) externalEtcd(ctx context.Context, s *scope) (bool, error) {
	if cluster := s.config.Spec.ClusterConfiguration; kubeadm.Defined(cluster) {
		return kubeadm.Defined(cluster.Etcd.External), nil
	}
	key := pki.SecretKey(s.key(), pki.APIServerEtcdClient)
	err := c.cached.Get(ctx, key, &corev1.Secret{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if err == nil {
		return true, nil
	}
	ca, err := c.secret(ctx, pki.SecretKey(s.key(), pki.EtcdCA))
	return ca != nil && len(ca.Data[pki.PrivateKeyKey]) == 0, err
}

// taintUninitialized prevents Pods from running on a worker until its Node has the labels of its Machine.
func taintUninitialized(join *bootstrapv1.JoinConfiguration) {
	taint := clusterv1.NodeUninitializedTaint
	taints := ptr.Deref(join.NodeRegistration.Taints, nil)
	if !slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
		join.NodeRegistration.Taints = ptr.To(append(taints, taint))
	}
}

// discovery completes the discovery configuration of the machine. Without a token of the user, it creates one with this ID.
func (c *Controller) discovery(ctx context.Context, s *scope, join *bootstrapv1.JoinConfiguration, id string) error {
	if kubeadm.Defined(join.Discovery.File) {
		return nil
	}
	d := &join.Discovery.BootstrapToken
	if d.APIServerEndpoint == "" {
		if !s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
			return fmt.Errorf("%w: Cluster %s has no valid spec.controlPlaneEndpoint yet", remote.ErrNotConnected, s.cluster.Name)
		}
		d.APIServerEndpoint = s.cluster.Spec.ControlPlaneEndpoint.String()
	}
	if len(d.CACertHashes) == 0 && !ptr.Deref(d.UnsafeSkipCAVerification, false) {
		if err := c.trust(ctx, s, d); err != nil {
			return err
		}
	}
	if d.Token != "" {
		return nil
	}
	token, err := c.createToken(ctx, s, id)
	d.Token = token
	return err
}

// untrusted means that there is no CA by which a machine could verify the identity of the cluster.
type untrusted struct{ error }

// trust pins the cluster's CA. It is required to join, unless the config has unsafeSkipCAVerification.
func (c *Controller) trust(ctx context.Context, s *scope, d *bootstrapv1.BootstrapTokenDiscovery) error {
	secret, err := c.secret(ctx, pki.SecretKey(s.key(), pki.ClusterCA))
	if err != nil {
		return err
	}
	if secret == nil {
		return untrusted{fmt.Errorf("Secret %s, the cluster's CA, does not exist: the control plane provider must create it, "+
			"or spec.joinConfiguration.discovery.bootstrapToken must set caCertHashes or unsafeSkipCAVerification",
			pki.SecretKey(s.key(), pki.ClusterCA))}
	}
	ca, err := pki.CAFrom(secret)
	if err != nil {
		return untrusted{err}
	}
	d.CACertHashes = []string{pki.PublicKeyHash(ca.Certificate)}
	return nil
}
