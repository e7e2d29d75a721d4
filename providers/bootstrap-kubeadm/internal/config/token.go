package config

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	tokenAlphabet    = kubeadm.TokenAlphabet
	tokenDescription = kubeadm.TokenDescription
	// tokenSecretLength is the length of the secret part of a token.
	tokenSecretLength = 16
	joinersGroup      = "system:bootstrappers:kubeadm:default-node-token"
)

// tokenID derives the public part of a config's token from its UID: creating a token twice is a conflict.
func tokenID(uid types.UID) string { return kubeadm.TokenID(string(uid)) }

func newTokenSecret() (string, error) {
	secret := make([]byte, tokenSecretLength)
	for i := range secret {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(tokenAlphabet))))
		if err != nil {
			return "", fmt.Errorf("generating a token: %w", err)
		}
		secret[i] = tokenAlphabet[n.Int64()]
	}
	return string(secret), nil
}

func tokenKey(id string) client.ObjectKey {
	return client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(id)}
}

// tokenSecret returns the Secret of a token in the workload cluster.
func (c *Controller) tokenSecret(id, secret string) *corev1.Secret {
	key := tokenKey(id)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			bootstrapapi.BootstrapTokenIDKey:               []byte(id),
			bootstrapapi.BootstrapTokenSecretKey:           []byte(secret),
			bootstrapapi.BootstrapTokenExpirationKey:       c.expiration(),
			bootstrapapi.BootstrapTokenUsageSigningKey:     []byte("true"),
			bootstrapapi.BootstrapTokenUsageAuthentication: []byte("true"),
			bootstrapapi.BootstrapTokenExtraGroupsKey:      []byte(joinersGroup),
			bootstrapapi.BootstrapTokenDescriptionKey:      []byte(tokenDescription),
		},
	}
}

// createToken creates a token with an ID in the workload cluster, or renews the existing one, and returns the token.
func (c *Controller) createToken(ctx context.Context, s *scope, id string) (string, error) {
	workload, err := c.workloads.Get(ctx, s.key())
	if err != nil {
		return "", err
	}
	secret, err := newTokenSecret()
	if err != nil {
		return "", err
	}
	err = workload.Create(ctx, c.tokenSecret(id, secret))
	if apierrors.IsAlreadyExists(err) {
		secret, err = c.existing(ctx, workload, id, secret)
	}
	if err != nil {
		return "", fmt.Errorf("creating bootstrap token %s: %w", tokenKey(id).Name, failsafe.Redacted(err))
	}
	return bootstraputil.TokenFromIDAndSecret(id, secret), nil
}

// existing returns the secret part of the existing token, and renews it. An invalid token is replaced:
// data with an invalid token would never be replaced.
func (c *Controller) existing(ctx context.Context, workload client.Client, id, instead string) (string, error) {
	token := &corev1.Secret{}
	if err := workload.Get(ctx, tokenKey(id), token); err != nil {
		return "", err
	}
	secret := string(token.Data[bootstrapapi.BootstrapTokenSecretKey])
	if bootstraputil.IsValidBootstrapToken(bootstraputil.TokenFromIDAndSecret(id, secret)) {
		return secret, c.prolong(ctx, workload, token)
	}
	// Its type may be another one, which is immutable.
	err := workload.Delete(ctx, token, client.Preconditions{UID: &token.UID, ResourceVersion: &token.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	return instead, workload.Create(ctx, c.tokenSecret(id, instead))
}

func (c *Controller) expiration() []byte {
	return []byte(c.Clock.Now().UTC().Add(c.tokenTTL).Format(time.RFC3339))
}

// token renews the token of a machine that has not joined yet, and recreates it if it expired while no manager was running.
func (c *Controller) token(ctx context.Context, s *scope) (step.Result, error) {
	if !s.ready() {
		return step.Done(), nil
	}
	if s.pool != nil {
		return c.poolToken(ctx, s)
	}
	if s.initialized() && s.isControlPlane() && s.canInitialize() {
		if err := c.locks.release(ctx, c.Clients, s.cluster); err != nil {
			return step.Stop(), err
		}
	}
	if s.machine.Status.NodeRef.IsDefined() || !s.initialized() || s.restores() {
		return step.Stop(), nil
	}
	workload, err := c.workloads.Get(ctx, s.key())
	if remote.IsNotConnected(err) {
		// A connection triggers a reconcile, but the creation of a kubeconfig Secret does not.
		return step.WaitAtMost(backstop, err.Error()), nil
	}
	if err != nil {
		return step.Stop(), err
	}
	key, token := tokenKey(kubeadm.TokenIDOf(s.config)), &corev1.Secret{}
	err = workload.Get(ctx, key, token)
	needed := true
	switch {
	case apierrors.IsNotFound(err):
		needed, err = c.revive(ctx, s, workload)
	case err == nil && string(token.Data[bootstrapapi.BootstrapTokenDescriptionKey]) == tokenDescription:
		err = c.prolong(ctx, workload, token)
	case err == nil:
		needed = false // Tokens of users are up to the user.
	}
	if err != nil {
		return step.Stop(), fmt.Errorf("renewing bootstrap token %s: %w", key.Name, failsafe.Redacted(err))
	}
	if !needed {
		return step.Stop(), nil
	}
	return step.WaitAtMost(c.tokenTTL/3, "the machine to join"), nil
}

// prolong renews a token after a sixth of its lifetime.
func (c *Controller) prolong(ctx context.Context, workload client.Client, token *corev1.Secret) error {
	expires, err := time.Parse(time.RFC3339, string(token.Data[bootstrapapi.BootstrapTokenExpirationKey]))
	if err != nil || expires.Sub(c.Clock.Now()) >= c.tokenTTL*5/6 {
		return nil // A token without expiration does not expire.
	}
	token.Data[bootstrapapi.BootstrapTokenExpirationKey] = c.expiration()
	return workload.Update(ctx, token)
}

// revive recreates a token that expired before the machine joined, and reports whether it is needed.
// It is the same token, so that the data does not change. Whether the machine has joined
// is read live, because a token grants access to the cluster.
func (c *Controller) revive(ctx context.Context, s *scope, workload client.Client) (bool, error) {
	secret, err := c.given(ctx, s)
	if err != nil || secret == "" {
		return false, err
	}
	machine := &clusterv1.Machine{}
	err = c.Live.Get(ctx, client.ObjectKeyFromObject(s.machine), machine)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Machine %s: %w", s.machine.Name, err)
	}
	if machine.UID != s.machine.UID || machine.DeletionTimestamp != nil || machine.Status.NodeRef.IsDefined() {
		return false, nil
	}
	err = workload.Create(ctx, c.tokenSecret(tokenID(s.config.UID), secret))
	if apierrors.IsAlreadyExists(err) {
		err = nil
	}
	return true, err
}

// given returns the secret part of the token in the machine's data; empty if it contains no token of ours,
// as in data that initializes a control plane.
func (c *Controller) given(ctx context.Context, s *scope) (string, error) {
	data := &corev1.Secret{}
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: s.config.Namespace, Name: s.config.Status.DataSecretName}, data)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the data of KubeadmConfig %s: %w", s.config.Name, err)
	}
	if !metav1.IsControlledBy(data, s.config) {
		return "", nil
	}
	id := tokenID(s.config.UID)
	_, rest, found := strings.Cut(string(data.Data[pki.KubeconfigKey]), "token: "+id+".")
	if secret := rest[:min(len(rest), tokenSecretLength)]; found &&
		bootstraputil.IsValidBootstrapToken(bootstraputil.TokenFromIDAndSecret(id, secret)) {
		return secret, nil
	}
	return "", nil
}
