package credentials

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Kubeconfig creates the admin kubeconfig of the cluster. It renews it half a year before its client certificate expires, and
// when the cluster CA changes. A kubeconfig that the control plane does not control only gets the label that the cache selects
// by, unless it was generated and has lost its owner.
func (p *Provider) Kubeconfig(ctx context.Context, cp *snapshot.ControlPlane) (step.Result, error) {
	key := pki.SecretKey(cp.Key(), pki.Kubeconfig)
	secret := &corev1.Secret{}
	err := p.Secrets.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		err = p.newKubeconfig(ctx, cp)
	case err == nil && metav1.IsControlledBy(secret, cp.KCP):
		return p.renewKubeconfig(ctx, cp, secret)
	case err == nil && pki.Orphaned(secret, cp.Cluster.Name):
		if err := p.own(ctx, cp, secret); err != nil {
			return step.Done(), err
		}
		return p.renewKubeconfig(ctx, cp, secret)
	}
	if err != nil {
		return step.Done(), fmt.Errorf("kubeconfig secret %s: %w", key, err)
	}
	return step.Done(), nil
}

func (p *Provider) newKubeconfig(ctx context.Context, cp *snapshot.ControlPlane) error {
	from, err := readCA(ctx, p.Client, cp) // live, because a CA that a user has provided may not be in the cache yet
	if err != nil {
		return err
	}
	config, err := p.issueKubeconfig(cp, from)
	if err != nil {
		return err
	}
	secret := pki.NewSecret(cp.Key(), pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: config}, cp.Owner())
	err = p.CreateIn(ctx, p.Secrets, secret)
	if apierrors.IsAlreadyExists(err) {
		return p.adoptExisting(ctx, cp, client.ObjectKeyFromObject(secret), &corev1.Secret{})
	}
	if err != nil {
		return fmt.Errorf("creating it: %w", failsafe.Redacted(err))
	}
	return nil
}

// clusterCA is the CA that signs client certificates, with all CA certificates that kubeconfigs must trust.
type clusterCA struct {
	*pki.CA
	trusted []*x509.Certificate
	// version changes when the Secret does.
	version string
}

func readCA(ctx context.Context, secrets client.Reader, cp *snapshot.ControlPlane) (*clusterCA, error) {
	secret := &corev1.Secret{}
	key := pki.SecretKey(cp.Key(), pki.ClusterCA)
	if err := secrets.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the cluster CA %s: %w", key, err)
	}
	signing, err := pki.CAFrom(secret)
	if err != nil {
		return nil, err
	}
	// While the CA is being rotated, there are others in addition to the one that signs.
	trusted, err := cert.ParseCertsPEM(secret.Data[pki.CertificateKey])
	if err != nil {
		return nil, fmt.Errorf("parsing the certificate of secret %s: %w", key, err)
	}
	return &clusterCA{signing, trusted, string(secret.UID) + "/" + secret.ResourceVersion}, nil
}

func (p *Provider) issueKubeconfig(cp *snapshot.ControlPlane, from *clusterCA) ([]byte, error) {
	config, err := p.Keys.Kubeconfig(cp.Cluster.Name, "https://"+cp.Cluster.Spec.ControlPlaneEndpoint.String(), from.CA, p.Clock.Now())
	if err != nil || len(from.trusted) == 1 {
		return config, err
	}
	loaded, err := clientcmd.Load(config)
	if err != nil {
		return nil, errors.New("the generated kubeconfig is invalid") // The cause could contain credentials.
	}
	if loaded.Clusters[cp.Cluster.Name].CertificateAuthorityData, err = cert.EncodeCertificates(from.trusted...); err != nil {
		return nil, fmt.Errorf("encoding the CA certificates: %w", err)
	}
	return clientcmd.Write(*loaded)
}

// renewKubeconfig renews the kubeconfig if its client certificate is about to expire, or if the cluster CA has changed, unless
// a new one would not match the CA either.
func (p *Provider) renewKubeconfig(ctx context.Context, cp *snapshot.ControlPlane, secret *corev1.Secret) (step.Result, error) {
	current := secret.Data[pki.KubeconfigKey]
	expiry, err := pki.KubeconfigExpiry(current)
	lasts := err == nil && (expiry.IsZero() || p.Clock.Now().Before(expiry.Add(-pki.RenewKubeconfigBefore)))
	from, err := readCA(ctx, p.Secrets, cp)
	if err != nil {
		return step.Done(), err
	}
	compared := string(secret.UID) + "/" + secret.ResourceVersion + " " + from.version
	if lasts && (expiry.IsZero() || p.isVerified(cp.KCP.UID, compared) || from.matches(current)) {
		p.verified.Store(cp.KCP.UID, compared)
		return p.untilRenewal(expiry), nil
	}
	config, err := p.issueKubeconfig(cp, from)
	if err != nil {
		return step.Done(), err
	}
	if lasts && !from.matches(config) {
		p.verified.Store(cp.KCP.UID, compared)
		return p.untilRenewal(expiry), nil
	}
	renew := func() {
		if secret.Data == nil { // A user has emptied it.
			secret.Data = map[string][]byte{}
		}
		secret.Data[pki.KubeconfigKey] = config
	}
	if err := p.Patch(ctx, secret, renew, step.IfUnchanged); err != nil {
		return step.Done(), fmt.Errorf("renewing kubeconfig secret %s: %w", client.ObjectKeyFromObject(secret), failsafe.Redacted(err))
	}
	return step.Done(), nil
}

// untilRenewal reconciles again when a kubeconfig must be renewed. Zero is the expiry of one without a client certificate.
func (p *Provider) untilRenewal(expiry time.Time) step.Result {
	if expiry.IsZero() {
		return step.Done()
	}
	return step.Again(expiry.Add(-pki.RenewKubeconfigBefore).Sub(p.Clock.Now()))
}

// matches reports whether a kubeconfig trusts all CA certificates, and the first one has signed its client certificate. A rotation makes a
// CA the first one when all API servers trust it.
func (a *clusterCA) matches(kubeconfig []byte) bool {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return false
	}
	in := config.Contexts[config.CurrentContext]
	if in == nil || config.Clusters[in.Cluster] == nil || config.AuthInfos[in.AuthInfo] == nil {
		return false
	}
	embedded, err := cert.ParseCertsPEM(config.Clusters[in.Cluster].CertificateAuthorityData)
	if err != nil {
		return false
	}
	chain, err := cert.ParseCertsPEM(config.AuthInfos[in.AuthInfo].ClientCertificateData)
	if err != nil {
		return false
	}
	for _, ca := range a.trusted {
		if !slices.ContainsFunc(embedded, ca.Equal) {
			return false
		}
	}
	return chain[0].CheckSignatureFrom(a.trusted[0]) == nil
}

// isVerified reports whether these versions of a control plane's Secrets are known to match.
func (p *Provider) isVerified(uid types.UID, versions string) bool {
	known, ok := p.verified.Load(uid)
	return ok && known == versions
}

// Forget drops the memory of a deleted control plane.
func (p *Provider) Forget(uid types.UID) {
	p.verified.Delete(uid)
	p.expiries.forget(uid)
}
