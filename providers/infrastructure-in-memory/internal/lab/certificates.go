package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// validity is the lifetime of serving certificates: they are issued again after a restart.
const validity = 10 * 365 * 24 * time.Hour

// Issuer issues the serving certificates of simulated API servers and etcd members, from the CAs of their cluster in the management
// cluster.
type Issuer struct {
	// Secrets reads the Secrets of CAs. It must read from the API server what is not in its cache: a Secret that a user created
	// may lack the label.
	Secrets client.Reader
	Clock   clock.PassiveClock
}

// CA returns a CA of a cluster, which may have no key. The error is NotFound if its Secret does not exist.
func (i Issuer) CA(ctx context.Context, cluster types.NamespacedName, purpose pki.Purpose) (*pki.CA, error) {
	secret := &corev1.Secret{}
	key := pki.SecretKey(cluster, purpose)
	if err := i.Secrets.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return pki.CAFrom(secret)
}

// ForAPIServer sets the credentials of a cluster's endpoint, once per process. Without etcd on the machines of the cluster, no client
// is admitted to etcd.
func (i Issuer) ForAPIServer(ctx context.Context, cluster types.NamespacedName, e *apiserver.Endpoint, stackedEtcd bool) error {
	if e.HasCredentials() {
		return nil
	}
	trusted := Authorities{}
	var err error
	if trusted.Cluster, err = i.certificates(ctx, cluster, pki.ClusterCA); err != nil {
		return err
	}
	if stackedEtcd {
		if trusted.Etcd, err = i.certificates(ctx, cluster, pki.EtcdCA); err != nil {
			return err
		}
	}
	credentials, err := i.credentials(ctx, cluster, e, trusted)
	if err != nil {
		return err
	}
	e.SetCredentials(credentials)
	return nil
}

// Authorities are the certificates of CAs in PEM. The first one of each signs, and all are trusted. Without etcd on the machines of the
// cluster, its CA is empty.
type Authorities struct{ Cluster, Etcd string }

// ForServer sets the credentials of one machine, if it was bootstrapped with other CAs than those of the endpoint, as while CAs are
// rotated. Its certificates are issued when it starts: the key of their CA must be in the Secret. After a restart of this process, it may
// be gone: then the current CA issues them.
func (i Issuer) ForServer(ctx context.Context, cluster types.NamespacedName, e *apiserver.Endpoint, machine string, a Authorities) error {
	if a.Cluster == "" || e.HasSource(machine, a.source()) {
		return nil
	}
	credentials, err := i.credentials(ctx, cluster, e, a)
	if err != nil {
		return err
	}
	e.SetServerCredentials(machine, credentials)
	return nil
}

func (a Authorities) source() string {
	return strings.TrimSpace(a.Cluster) + "\n" + strings.TrimSpace(a.Etcd)
}

// certificates returns the certificates of a CA in PEM.
func (i Issuer) certificates(ctx context.Context, cluster types.NamespacedName, purpose pki.Purpose) (string, error) {
	secret := &corev1.Secret{}
	key := pki.SecretKey(cluster, purpose)
	if err := i.Secrets.Get(ctx, key, secret); err != nil {
		return "", fmt.Errorf("reading Secret %s: %w", key, err)
	}
	pair, err := pki.PairFrom(secret)
	return string(pair.Certificate), err
}

func (i Issuer) credentials(
	ctx context.Context, cluster types.NamespacedName, e *apiserver.Endpoint, a Authorities,
) (apiserver.Credentials, error) {
	ca, err := i.CA(ctx, cluster, pki.ClusterCA)
	if err != nil {
		return apiserver.Credentials{}, err
	}
	serving, err := i.Serving(ca, e, "kube-apiserver", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return apiserver.Credentials{}, err
	}
	credentials := apiserver.Credentials{
		Serving: serving, Authority: ca.Certificate, ClientCAs: x509.NewCertPool(), EtcdClientCAs: x509.NewCertPool(), Source: a.source(),
	}
	credentials.ClientCAs.AppendCertsFromPEM([]byte(a.Cluster))
	credentials.EtcdClientCAs.AppendCertsFromPEM([]byte(a.Etcd))
	return credentials, nil
}

// Serving issues a serving certificate for the address of an endpoint and these names.
func (i Issuer) Serving(ca *pki.CA, e *apiserver.Endpoint, commonName string, names ...string) (tls.Certificate, error) {
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	host, _, err := net.SplitHostPort(e.Address())
	if ip := net.ParseIP(host); err == nil && ip != nil {
		ips = append(ips, ip)
	}
	request := pki.Request{CommonName: commonName, DNSNames: append(names, "localhost"), IPs: ips, Validity: validity}
	pair, err := ca.Issue(request, i.Clock.Now())
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(pair.Certificate, pair.Key)
}
