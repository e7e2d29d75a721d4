package bootstrap

import (
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// Cluster is the workload cluster as seen by a machine.
type Cluster struct {
	// Group is its content.
	Group *cloud.Group
	// Answers reports whether its API server responds.
	Answers bool
	// CAs are those by which machines recognize the API servers; empty if there is none yet.
	CAs []*x509.Certificate
}

// Check returns why kubeadm fails on a machine of this name, or nil. Unknown data never fails.
func (d Data) Check(c Cluster, machine string, now time.Time) error {
	if d.Problem != "" {
		return errors.New(d.Problem)
	}
	if d.Action != Join {
		return nil
	}
	if !c.Answers || len(c.CAs) == 0 {
		return errors.New("couldn't validate the identity of the API server: it does not respond")
	}
	if len(d.CAHashes) > 0 && !slices.ContainsFunc(c.CAs, d.pins) {
		return errors.New("couldn't validate the identity of the API server: its CA does not match any of caCertHashes")
	}
	if d.Token != "" {
		if err := checkToken(c.Group, d.Token, now); err != nil {
			return err
		}
	}
	node, err := store.Get[corev1.Node](c.Group, "", machine)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return fmt.Errorf("a Node with name %q and status %q already exists in the cluster", machine, corev1.NodeReady)
		}
	}
	return nil
}

// pins reports whether a CA is one of those in caCertHashes.
func (d Data) pins(ca *x509.Certificate) bool {
	return slices.Contains(d.CAHashes, pki.PublicKeyHash(ca))
}

// checkToken checks that a bootstrap token is valid for discovery and authentication.
func checkToken(g *cloud.Group, token string, now time.Time) error {
	id, secret, valid := strings.Cut(token, ".")
	if !valid {
		return errors.New("the bootstrap token is invalid: it must have the form [a-z0-9]{6}.[a-z0-9]{16}")
	}
	kept, err := store.Get[corev1.Secret](g, metav1.NamespaceSystem, bootstrapapi.BootstrapTokenSecretPrefix+id)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("bootstrap token %q not found in the cluster", id)
	}
	if err != nil {
		return err
	}
	read := func(key string) string { return string(kept.Data[key]) }
	switch {
	case kept.Type != bootstrapapi.SecretTypeBootstrapToken || read(bootstrapapi.BootstrapTokenIDKey) != id:
		return fmt.Errorf("secret %s is not a bootstrap token", kept.Name)
	case subtle.ConstantTimeCompare([]byte(read(bootstrapapi.BootstrapTokenSecretKey)), []byte(secret)) != 1:
		return fmt.Errorf("the secret of bootstrap token %q does not match", id)
	case read(bootstrapapi.BootstrapTokenUsageSigningKey) != "true" || read(bootstrapapi.BootstrapTokenUsageAuthentication) != "true":
		return fmt.Errorf("bootstrap token %q is not enabled for both signing and authentication", id)
	}
	text := read(bootstrapapi.BootstrapTokenExpirationKey)
	if text == "" {
		return nil
	}
	expires, err := time.Parse(time.RFC3339, text)
	if err != nil || !now.Before(expires) {
		return fmt.Errorf("bootstrap token %q has expired", id)
	}
	return nil
}
