package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// selfHosted returns the configuration of a workload cluster that is the management cluster itself: with the address by which this
// process reaches the management cluster, and the credentials of the kubeconfig. Its own address may be unreachable from inside, as
// with load balancers that do not send a client's packets back to it. It returns nil for all other clusters, and if that is unknown.
//
// A cluster is recognized by its API server, which needs no permissions there: at the address of the management cluster, it must prove
// with a certificate of the kubeconfig's CA that it is the server in the kubeconfig. That is the proof that clients of the kubeconfig
// demand, too. So clusters that share a CA are not mistaken for each other, unless they also have the same host name or IP address.
// For clusters with CAs of their own this costs no request.
func (o *Options) selfHosted(ctx context.Context, config *rest.Config) *rest.Config {
	if o.Management == nil || config.Proxy != nil || config.Insecure {
		return nil
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil
	}
	management := rest.CopyConfig(o.Management)
	if rest.LoadTLSFiles(management) != nil || !shareCA(config.CAData, management.CAData) {
		return nil
	}
	own := rest.CopyConfig(config)
	own.Host, own.Dial = management.Host, management.Dial
	if own.ServerName == "" {
		own.ServerName = server.Hostname()
	}
	if own.Dial == nil {
		own.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext // The address is the operator's, so the policy does not apply.
	}
	if !proves(ctx, own) {
		return nil
	}
	return own
}

// shareCA reports whether two bundles of CAs in PEM have a certificate in common.
func shareCA(a, b []byte) bool {
	first, err := cert.ParseCertsPEM(a)
	if err != nil {
		return false
	}
	second, err := cert.ParseCertsPEM(b)
	return err == nil && slices.ContainsFunc(first, func(c *x509.Certificate) bool { return slices.ContainsFunc(second, c.Equal) })
}

// proves reports whether the server of a configuration has a certificate for its server name.
func proves(ctx context.Context, config *rest.Config) bool {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := config.Dial(ctx, "tcp", addressOf(server))
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }() // Nothing was sent.
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	handshake := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: config.ServerName})
	return handshake.HandshakeContext(ctx) == nil
}

// addressOf returns host and port of a server.
func addressOf(server *url.URL) string {
	if server.Port() == "" {
		return net.JoinHostPort(server.Hostname(), "443")
	}
	return server.Host
}
