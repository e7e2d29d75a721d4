package controlplane

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/provider/refusal"
	"sigs.k8s.io/cluster-api/provider/step"
)

// kubeconfig makes the admin kubeconfig of the cluster, and makes it anew half a year before its client certificate
// expires, and when the certificate authority is replaced. A kubeconfig that the control plane does not own is left
// alone, but for the label that it is found by.
func (c *Controller) kubeconfig(ctx context.Context, s *scope) (step.Result, error) {
	key := pki.SecretKey(s.key(), pki.Kubeconfig)
	secret := &corev1.Secret{}
	err := c.Secrets.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		err = c.newKubeconfig(ctx, s)
	case err == nil && metav1.IsControlledBy(secret, s.kcp):
		return c.renewKubeconfig(ctx, s, secret)
	}
	if err != nil {
		return step.Result{}, fmt.Errorf("kubeconfig secret %s: %w", key, err)
	}
	return step.Done(), nil
}

func (c *Controller) newKubeconfig(ctx context.Context, s *scope) error {
	from, err := readAuthority(ctx, c.Client, s) // live: one that users bring may be new to the cache
	if err != nil {
		return err
	}
	config, err := c.issueKubeconfig(s, from)
	if err != nil {
		return err
	}
	secret := pki.NewSecret(s.key(), pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: config}, s.owner())
	err = c.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return c.found(ctx, s, client.ObjectKeyFromObject(secret), &corev1.Secret{})
	}
	if err != nil {
		return fmt.Errorf("creating it: %w", refusal.Redacted(err))
	}
	step.AwaitVisible(ctx, c.Secrets, secret)
	return nil
}

// authority is the certificate authority that signs kubeconfigs, and all certificates that they are to trust.
type authority struct {
	*pki.CA
	trusted []*x509.Certificate
	// version changes when the Secret does.
	version string
}

func readAuthority(ctx context.Context, secrets client.Reader, s *scope) (*authority, error) {
	secret := &corev1.Secret{}
	key := pki.SecretKey(s.key(), pki.ClusterCA)
	if err := secrets.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the certificate authority %s: %w", key, err)
	}
	signing, err := pki.CAFrom(secret)
	if err != nil {
		return nil, err
	}
	// Besides the one that signs there may be others, while one replaces another.
	trusted, err := cert.ParseCertsPEM(secret.Data[pki.CertificateKey])
	if err != nil {
		return nil, fmt.Errorf("parsing the certificate of secret %s: %w", key, err)
	}
	return &authority{signing, trusted, string(secret.UID) + "/" + secret.ResourceVersion}, nil
}

func (c *Controller) issueKubeconfig(s *scope, from *authority) ([]byte, error) {
	config, err := c.Keys.Kubeconfig(s.cluster.Name, "https://"+s.cluster.Spec.ControlPlaneEndpoint.String(), from.CA, c.Clock.Now())
	if err != nil || len(from.trusted) == 1 {
		return config, err
	}
	loaded, err := clientcmd.Load(config)
	if err != nil {
		return nil, errors.New("the kubeconfig that was just made cannot be read") // The cause could quote credentials.
	}
	if loaded.Clusters[s.cluster.Name].CertificateAuthorityData, err = cert.EncodeCertificates(from.trusted...); err != nil {
		return nil, fmt.Errorf("encoding the certificate authorities: %w", err)
	}
	return clientcmd.Write(*loaded)
}

// renewKubeconfig makes the kubeconfig anew when its client certificate is about to expire, or when the certificate
// authority has changed, unless that would not help.
func (c *Controller) renewKubeconfig(ctx context.Context, s *scope, secret *corev1.Secret) (step.Result, error) {
	current := secret.Data[pki.KubeconfigKey]
	expiry, err := pki.KubeconfigExpiry(current)
	lasts := err == nil && (expiry.IsZero() || c.Clock.Now().Before(expiry.Add(-pki.RenewKubeconfigBefore)))
	from, err := readAuthority(ctx, c.Secrets, s)
	if err != nil {
		return step.Result{}, err
	}
	compared := string(secret.UID) + "/" + secret.ResourceVersion + " " + from.version
	if lasts && (expiry.IsZero() || c.kubeconfigs.is(s.kcp.UID, compared) || from.vouches(current)) {
		c.kubeconfigs.set(s.kcp.UID, compared)
		return step.Done(), nil
	}
	config, err := c.issueKubeconfig(s, from)
	if err != nil {
		return step.Result{}, err
	}
	if lasts && !from.vouches(config) {
		c.kubeconfigs.set(s.kcp.UID, compared)
		return step.Done(), nil
	}
	renew := func() {
		if secret.Data == nil { // it was emptied
			secret.Data = map[string][]byte{}
		}
		secret.Data[pki.KubeconfigKey] = config
	}
	if err := c.Patch(ctx, secret, true, renew); err != nil {
		return step.Result{}, fmt.Errorf("renewing kubeconfig secret %s: %w", client.ObjectKeyFromObject(secret), refusal.Redacted(err))
	}
	return step.Done(), nil
}

// vouches reports whether a kubeconfig trusts all that is to be trusted, and is signed by one of them.
func (a *authority) vouches(kubeconfig []byte) bool {
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
	signed := false
	for _, ca := range a.trusted {
		if !slices.ContainsFunc(embedded, ca.Equal) {
			return false
		}
		signed = signed || chain[0].CheckSignatureFrom(ca) == nil
	}
	return signed
}
