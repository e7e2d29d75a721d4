package wire

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
	"k8s.io/utils/lru"

	"sigs.k8s.io/cluster-api/sdk/naming"
)

const (
	// maxTransports is the number of CAs whose connections are kept. Management clusters have a few.
	maxTransports = 64
	// idleTimeout is how long an idle connection is kept.
	idleTimeout = 90 * time.Second
	// pingAfter and pingTimeout detect connections whose server has gone without closing them, before the kernel does.
	pingAfter, pingTimeout = 15 * time.Second, 10 * time.Second
	// maxHeaders is the maximum size of the headers of a response.
	maxHeaders = 32 << 10
)

// DialFunc opens a connection.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// transports are the connections to all servers, by the CAs that they trust.
type transports struct {
	dial        DialFunc
	certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	mu          sync.Mutex
	kept        *lru.Cache // http.Transports by hash of the CAs
}

func newTransports(dial DialFunc, certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)) *transports {
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	return &transports{dial: dial, certificate: certificate, kept: lru.NewWithEvictionFunc(maxTransports, func(_ lru.Key, v any) {
		v.(*http.Transport).CloseIdleConnections()
	})}
}

// closeIdle closes idle connections, and those in use once they are idle. No call uses them again.
func (t *transports) closeIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Clear()
}

// of returns the transport that trusts these CAs, or those of the host if there are none.
func (t *transports) of(authorities []byte) (http.RoundTripper, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := sha256.Sum256(authorities)
	if found, ok := t.kept.Get(key); ok {
		return found.(*http.Transport), nil
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12, GetClientCertificate: t.certificate}
	if len(authorities) > 0 {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, errors.New("the CA bundle has no certificate")
		}
	}
	built := &http.Transport{
		Proxy: proxy(), DialContext: t.dial, TLSClientConfig: trust, DisableCompression: true,
		ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		MaxIdleConnsPerHost: 10, IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: maxHeaders,
	}
	t.kept.Add(key, built)
	return built, nil
}

// proxy returns a function that returns the proxy of the environment, except for Services, which a proxy does not know.
func proxy() func(*http.Request) (*url.URL, error) {
	environment := httpproxy.FromEnvironment().ProxyFunc()
	return func(r *http.Request) (*url.URL, error) {
		if _, ok := naming.ParseService(r.URL.Hostname()); ok {
			return nil, nil
		}
		return environment(r.URL)
	}
}
