package config

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// failed sets the condition for an error, unless it is stale.
func (c *Controller) failed(s *scope, err error) error {
	if !step.IsStale(err) {
		condition.Set(s.config, condition.False(bootstrapv1.DataSecretAvailableV1Beta1Condition, clusterv1.ConditionSeverityWarning,
			bootstrapv1.DataSecretGenerationFailedV1Beta1Reason, "%v", err))
	}
	if errors.As(err, &mistake{}) {
		return step.Terminal(err)
	}
	return err
}

// mistake is an error that only a change of the config, or of its Machine, can fix.
type mistake struct{ error }

// Unwrap returns the error itself.
func (m mistake) Unwrap() error { return m.error }

// secret returns a Secret of the cluster; nil if it does not exist. Those of users may lack the label by which Secrets are
// cached, and large ones are cached without data: what is not in the cache, the manager's client reads from the API server.
func (c *Controller) secret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return secret, nil
}

// certificates returns the files with a control plane machine's certificates. Those of a cluster without control
// plane object are generated when its first machine is initialized.
func (c *Controller) certificates(ctx context.Context, s *scope, externalEtcd, create bool) ([]bootstrapv1.File, error) {
	var files []bootstrapv1.File
	for _, purpose := range pki.OfControlPlane(externalEtcd) {
		pair, err := c.pair(ctx, s, purpose, create && !s.cluster.Spec.ControlPlaneRef.IsDefined() && !(externalEtcd && purpose == pki.EtcdCA))
		if err != nil {
			reason, severity := bootstrapv1.CertificatesCorruptedV1Beta1Reason, clusterv1.ConditionSeverityError
			if create {
				reason, severity = bootstrapv1.CertificatesGenerationFailedV1Beta1Reason, clusterv1.ConditionSeverityWarning
			}
			condition.Set(s.config, condition.False(bootstrapv1.CertificatesAvailableV1Beta1Condition, severity, reason, "%v", err))
			return nil, err
		}
		if externalEtcd && purpose == pki.EtcdCA {
			pair.Key = nil // The key of the CA of external etcd must not be distributed.
		}
		files = append(files, filesOf(purpose, pair)...)
	}
	condition.Set(s.config, condition.True(bootstrapv1.CertificatesAvailableV1Beta1Condition))
	return files, nil
}

func (c *Controller) pair(ctx context.Context, s *scope, purpose pki.Purpose, create bool) (pki.Pair, error) {
	key := pki.SecretKey(s.key(), purpose)
	secret, err := c.secret(ctx, key)
	if err != nil {
		return pki.Pair{}, err
	}
	if secret != nil {
		return pki.PairFrom(secret)
	}
	if !create || purpose == pki.APIServerEtcdClient {
		return pki.Pair{},
			fmt.Errorf("Secret %s does not exist: the control plane provider must create it, or the user for user-provided certificates", key)
	}
	config, now := &s.config.Spec.ClusterConfiguration, c.Clock.Now()
	pair, err := c.keys.GenerateUntil(purpose, now, kubeadm.CAExpiry(config, now), kubeadm.KeyAlgorithm(config), s.cluster)
	if err != nil {
		return pki.Pair{}, err
	}
	owner := ownership.Reference(s.config, bootstrapv1.GroupVersion.WithKind(kubeadmConfigKind), true)
	if err := c.CreateIn(ctx, nil, pki.NewSecret(s.key(), purpose, pair.Data(), &owner)); err != nil {
		return pki.Pair{}, fmt.Errorf("creating Secret %s: %w", key, failsafe.Redacted(err))
	}
	return pair, nil
}

// paths are the paths of kubeadm's certificates and keys.
var paths = map[pki.Purpose][2]string{ // a constant table
	pki.ClusterCA:           {"/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/ca.key"},
	pki.EtcdCA:              {"/etc/kubernetes/pki/etcd/ca.crt", "/etc/kubernetes/pki/etcd/ca.key"},
	pki.FrontProxyCA:        {"/etc/kubernetes/pki/front-proxy-ca.crt", "/etc/kubernetes/pki/front-proxy-ca.key"},
	pki.ServiceAccount:      {"/etc/kubernetes/pki/sa.pub", "/etc/kubernetes/pki/sa.key"},
	pki.APIServerEtcdClient: {"/etc/kubernetes/pki/apiserver-etcd-client.crt", "/etc/kubernetes/pki/apiserver-etcd-client.key"},
}

// filesOf returns the files of a pair: one for a user-provided CA without key, otherwise two.
func filesOf(purpose pki.Purpose, pair pki.Pair) []bootstrapv1.File {
	files := []bootstrapv1.File{{Path: paths[purpose][0], Owner: "root:root", Permissions: "0640", Content: string(pair.Certificate)}}
	if len(pair.Key) > 0 {
		files = append(files, bootstrapv1.File{Path: paths[purpose][1], Owner: "root:root", Permissions: "0600", Content: string(pair.Key)})
	}
	return files
}
