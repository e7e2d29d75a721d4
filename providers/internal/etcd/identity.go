package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

const (
	// clientName is the common name of our client certificates.
	clientName = "cluster-api.x-k8s.io"
	// clientValidity is short because certificates are only in memory, and are renewed after half of it.
	clientValidity = 24 * time.Hour
)

// Identity provides client certificates for the members of one cluster, and verifies their certificates. A client certificate
// is used until it is renewed or the CA changes.
type Identity struct {
	// Secrets reads the Secrets of the cluster from a cache.
	Secrets client.Reader
	// Cluster is the key of the Cluster.
	Cluster types.NamespacedName
	// Clock is for the validity of certificates.
	Clock clock.PassiveClock

	mu      sync.Mutex
	current *proof
}

// proof are the certificates for one version of the Secret.
type proof struct {
	source  string
	roots   *x509.CertPool
	client  tls.Certificate
	renewal time.Time
}

// get returns the current certificates.
func (i *Identity) get(ctx context.Context) (*proof, error) {
	secret := &corev1.Secret{}
	key := pki.SecretKey(i.Cluster, pki.EtcdCA)
	if err := i.Secrets.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the etcd CA, Secret %s: %w", key, err)
	}
	source, now := string(secret.UID)+"/"+secret.ResourceVersion, i.Clock.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.current != nil && i.current.source == source && now.Before(i.current.renewal) {
		return i.current, nil
	}
	made, err := i.make(ctx, secret, now)
	if err != nil {
		return nil, err
	}
	made.source = source
	i.current = made
	return made, nil
}

func (i *Identity) make(ctx context.Context, secret *corev1.Secret, now time.Time) (*proof, error) {
	pair, err := pki.PairFrom(secret)
	if err != nil {
		return nil, err
	}
	// While the CA is being rotated, there are two.
	trusted, err := cert.ParseCertsPEM(pair.Certificate)
	if err != nil {
		return nil, fmt.Errorf("parsing the certificate of Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	c := &proof{roots: x509.NewCertPool(), renewal: now.Add(clientValidity / 2)}
	for _, authority := range trusted {
		c.roots.AddCert(authority)
	}
	if len(pair.Key) == 0 {
		pair, err = i.provided(ctx)
	} else {
		pair, err = issue(secret, now)
	}
	if err != nil {
		return nil, err
	}
	c.client, err = tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, errors.New("the etcd client certificate and its key do not match") // The cause could contain the key.
	}
	return c, nil
}

func issue(secret *corev1.Secret, now time.Time) (pki.Pair, error) {
	authority, err := pki.CAFrom(secret)
	if err != nil {
		return pki.Pair{}, err
	}
	return authority.Issue(pki.Request{CommonName: clientName, Validity: clientValidity}, now)
}

// provided returns the client certificate that users provide if the Secret of the CA has no key.
func (i *Identity) provided(ctx context.Context) (pki.Pair, error) {
	secret := &corev1.Secret{}
	key := pki.SecretKey(i.Cluster, pki.APIServerEtcdClient)
	if err := i.Secrets.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return pki.Pair{},
				fmt.Errorf("the Secret of the etcd CA has no key, and Secret %s does not exist: create it with a client certificate", key)
		}
		return pki.Pair{}, fmt.Errorf("reading the etcd client certificate, Secret %s: %w", key, err)
	}
	return pki.PairFrom(secret)
}

// config returns the TLS configuration for the member on a Node. Every handshake uses the current certificates.
func (i *Identity) config(node string) *tls.Config {
	pod := "etcd-" + node
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		ServerName: pod,
		GetClientCertificate: func(request *tls.CertificateRequestInfo) (_ *tls.Certificate, err error) {
			defer failsafe.Recover("choosing the client certificate", &err)
			c, err := i.get(request.Context())
			if err != nil {
				return nil, err
			}
			return &c.client, nil
		},
		// Chain and name are verified in VerifyConnection: certificates of kubeadm have the names of the Node and localhost,
		// others the name of the Pod.
		InsecureSkipVerify: true, //nolint:gosec // See VerifyConnection.
		VerifyConnection: func(state tls.ConnectionState) (err error) {
			defer failsafe.Recover("verifying the member's certificate", &err)
			c, err := i.get(context.Background())
			if err != nil {
				return err
			}
			return verify(state.PeerCertificates, c.roots, i.Clock.Now(), pod, node, "localhost")
		},
	}
}

// verify checks that a certificate is a server certificate, is signed by one of the roots, and has one of the names.
func verify(chain []*x509.Certificate, roots *x509.CertPool, now time.Time, names ...string) error {
	if len(chain) == 0 {
		return errors.New("the member has no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now}); err != nil {
		return fmt.Errorf("verifying the member's certificate: %w", err)
	}
	var err error
	for _, name := range names {
		if err = chain[0].VerifyHostname(name); err == nil {
			return nil
		}
	}
	return fmt.Errorf("the member's certificate is not valid for any of %v: %w", names, err)
}
