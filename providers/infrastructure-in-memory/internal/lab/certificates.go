package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
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
	ca, err := i.CA(ctx, cluster, pki.ClusterCA)
	if err != nil {
		return err
	}
	serving, err := i.Serving(ca, e, "kube-apiserver", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	credentials := apiserver.Credentials{
		Serving: serving, Authority: ca.Certificate, ClientCAs: x509.NewCertPool(), EtcdClientCAs: x509.NewCertPool(),
	}
	credentials.ClientCAs.AddCert(ca.Certificate)
	if stackedEtcd {
		etcdCA, err := i.CA(ctx, cluster, pki.EtcdCA)
		if err != nil {
			return err
		}
		credentials.EtcdClientCAs.AddCert(etcdCA.Certificate)
	}
	e.SetCredentials(credentials)
	return nil
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
