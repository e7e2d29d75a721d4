package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

// specAnnotation on the Secret with the data of a MachinePool is a hash of the spec that the data was generated from. Data without it,
// such as that of Cluster API v1.7, counts as up to date: an upgrade of the management cluster replaces no machines.
const specAnnotation = "bootstrap.cluster.x-k8s.io/spec-hash"

// specHash returns the hash of a config's spec in v1beta1: Secrets have it, and another one would replace all machines. So what v1beta1
// does not have is not a change.
func specHash(ctx context.Context, config *bootstrapv1.KubeadmConfig) (string, error) {
	older := &bootstrapv1beta1.KubeadmConfig{}
	if err := conversion.Shared().Convert(ctx, config, older); err != nil {
		return "", fmt.Errorf("hashing the spec: %w", err)
	}
	text, err := json.Marshal(older.Spec)
	if err != nil {
		return "", fmt.Errorf("hashing the spec: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// secretName returns the name of the Secret with the data. It is that of the config, until the spec of the config of a MachinePool
// changes: then it has a suffix, so that infrastructure providers notice. The MachinePool still has that name after a move, which loses
// the status of the config.
func (s *scope) secretName() string {
	if s.pool == nil {
		return s.config.Name
	}
	if name := s.config.Status.DataSecretName; name != "" {
		return name
	}
	if name := nameAfterChange(s.config, s.hash); ptr.Deref(s.pool.Spec.Template.Spec.Bootstrap.DataSecretName, "") == name {
		return name
	}
	return s.config.Name
}

func (s *scope) secretKey() client.ObjectKey {
	return client.ObjectKey{Namespace: s.config.Namespace, Name: s.secretName()}
}

// nameAfterChange returns the name of the Secret with the data of a changed spec.
func nameAfterChange(config *bootstrapv1.KubeadmConfig, hash string) string {
	return naming.WithSuffix(config.Name, naming.Suffix(config.Name, hash))
}

// isOwnName reports whether a Secret has one of the names that secretName returns.
func isOwnName(config *bootstrapv1.KubeadmConfig, name string) bool {
	suffix := len(naming.Suffix())
	return name == config.Name || len(name) > suffix && name == naming.WithSuffix(config.Name, name[len(name)-suffix:])
}

// data returns the Secret with the current data of a MachinePool; nil if it does not exist. A Secret that is new may not be in the
// cache, and the wrong token would follow from that, so it is read from the API server then.
func (c *Controller) data(ctx context.Context, s *scope) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.cached.Get(ctx, s.secretKey(), secret)
	if apierrors.IsNotFound(err) && s.secretName() != s.config.Name {
		err = c.Live.Get(ctx, s.secretKey(), secret)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", s.secretName(), err)
	}
	return secret, nil
}

// annotate adds the hash of the spec to a Secret with the data of a MachinePool.
func annotate(s *scope, secret *corev1.Secret) {
	if s.pool != nil {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, specAnnotation, s.hash)
	}
	if s.authorities != "" {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, fleetv1.AuthoritiesAnnotation, s.authorities)
	}
}

// deletePrevious deletes the Secrets with data of previous specs, whose tokens have expired or are about to.
func (c *Controller) deletePrevious(ctx context.Context, s *scope) error {
	all := &corev1.SecretList{}
	if err := c.cached.List(ctx, all, client.InNamespace(s.config.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: s.cluster.Name}); err != nil {
		return fmt.Errorf("listing Secrets: %w", err)
	}
	for i := range all.Items {
		secret := &all.Items[i]
		if secret.Name == s.secretName() || !isOwnName(s.config, secret.Name) || !metav1.IsControlledBy(secret, s.config) ||
			secret.Name == ptr.Deref(s.pool.Spec.Template.Spec.Bootstrap.DataSecretName, "") {
			continue
		}
		if err := c.Delete(ctx, secret); err != nil {
			return fmt.Errorf("deleting Secret %s: %w", secret.Name, err)
		}
	}
	return nil
}
