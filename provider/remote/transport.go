package remote

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

const (
	// dialTimeout bounds connecting, and the TLS handshake after it.
	dialTimeout = 10 * time.Second
	// maxResponse bounds what is read of a response that is read whole.
	maxResponse = 16 << 20
	// maxErrorResponse bounds what is read of a response that says that a request failed.
	maxErrorResponse = 32 << 10
	// maxHeader bounds the header of a response.
	maxHeader = 64 << 10
	// idleTimeout is how long a connection without requests is kept.
	idleTimeout = 90 * time.Second
)

// dialFunc connects to an address.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// guarded connects only to addresses that the policy permits. They are checked after names were resolved, when the
// connection is made, so that no name can mean one address when it is checked and another one later.
func (p Policy) guarded() *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return &RefusedError{What: "its server has an address that is not an IP address"}
		}
		return p.address(to.Addr())
	}}
}

// netDialer is dialer for libraries that take nothing else. Through the process's own proxy, no address is checked: all of a
// cluster's connections go there.
func (p Policy) netDialer(config *rest.Config) *net.Dialer {
	if ownProxy(config) != "" {
		return &net.Dialer{Timeout: dialTimeout}
	}
	return p.guarded()
}

// dialer is how a cluster is connected to. The proxy of the process's own environment is the operator's choice, and may
// be anywhere.
func dialer(config *rest.Config, guarded dialFunc) dialFunc {
	own := ownProxy(config)
	if own == "" {
		return guarded
	}
	free := &net.Dialer{Timeout: dialTimeout}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == own {
			return free.DialContext(ctx, network, address)
		}
		return guarded(ctx, network, address)
	}
}

// ownProxy is host and port of the proxy that the environment of the process has for a server, or empty.
func ownProxy(config *rest.Config) string {
	server, err := url.Parse(config.Host)
	if err != nil || config.Proxy != nil {
		return ""
	}
	proxy, err := utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)(&http.Request{URL: server})
	if err != nil || proxy == nil {
		return ""
	}
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}

// newTransport makes the transport of one connection. Transports that client-go makes are shared and live forever; this
// one goes, with its sockets, when the connection does.
func newTransport(ctx context.Context, config *rest.Config) (http.RoundTripper, error) {
	c, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := transport.TLSConfigFor(c)
	if err != nil {
		return nil, err
	}
	base := utilnet.SetTransportDefaults(&http.Transport{
		Proxy: c.Proxy, TLSClientConfig: tlsConfig, DialContext: c.DialHolder.Dial, TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: maxHeader, DisableCompression: config.DisableCompression,
	})
	context.AfterFunc(ctx, base.CloseIdleConnections)
	return transport.HTTPWrappersForConfig(c, base)
}

// RefuseRedirects is for http.Client.CheckRedirect: API servers do not redirect, and where to must not be a workload
// cluster's choice.
func RefuseRedirects(*http.Request, []*http.Request) error {
	return &RefusedError{What: "a redirect to another address"}
}

// quota is how many bytes may be read of a response. What reads a stream refills it with every object.
type quota struct {
	what string
	size int64
	left atomic.Int64
	// total, if not zero, bounds the whole stream.
	total int64
	read  atomic.Int64
}

func newQuota(what string, size, total int64) *quota {
	q := &quota{what: what, size: size, total: total}
	q.refill()
	return q
}

func (q *quota) refill() { q.left.Store(q.size) }

func (q *quota) take(n int) error {
	if q.left.Add(-int64(n)) < 0 {
		return &limitError{What: q.what, Limit: q.size}
	}
	if read := q.read.Add(int64(n)); q.total > 0 && read > q.total {
		return &limitError{What: q.what + " stream", Limit: q.total}
	}
	return nil
}

type quotaKey struct{}

// within makes requests with this context read as much as the quota has.
func within(ctx context.Context, q *quota) context.Context {
	return context.WithValue(ctx, quotaKey{}, q)
}

// attentive bounds what is read of responses, and notices that nothing listens where the cluster was, and that what
// listens is dumb. Watches alone would not: they wait for as long as that lasts, with a cache that grows old.
type attentive struct {
	transport http.RoundTripper
	end       context.CancelCauseFunc
	heard     func()
}

// RoundTrip implements http.RoundTripper.
func (a *attentive) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.transport.RoundTrip(r)
	if err != nil {
		if utilnet.IsConnectionRefused(err) {
			a.end(err)
		}
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		return response, nil
	}
	// Clients sleep for as long as this says, within the request: a workload cluster must not hold up our workers.
	response.Header.Del("Retry-After")
	b := &body{ReadCloser: response.Body, quota: newQuota("a response", maxResponse, 0), end: func(error) {}}
	switch q, ok := r.Context().Value(quotaKey{}).(*quota); {
	case response.StatusCode >= http.StatusBadRequest:
		b.quota = newQuota("a failure", maxErrorResponse, 0)
		if !isStatus(response.Header) {
			// Something else than an API server; what it says must not end up in the text of an error.
			_ = response.Body.Close()
			b.ReadCloser = http.NoBody
		}
	case ok:
		b.quota = q
	}
	if r.URL.Query().Get("watch") == "true" {
		b.heard, b.end = a.heard, a.end
	}
	response.Body = b
	return response, nil
}

// isStatus is whether a response can be a Status of Kubernetes.
func isStatus(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (kind == "application/json" || kind == "application/vnd.kubernetes.protobuf")
}

// body is the body of a response, up to its quota.
type body struct {
	io.ReadCloser
	quota *quota
	heard func()
	// end ends the connection: what reads a watch does not pass errors on as they are.
	end   func(error)
	spent error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.spent != nil {
		return 0, b.spent
	}
	n, err := b.ReadCloser.Read(p)
	if n > 0 && b.heard != nil {
		b.heard()
	}
	if over := b.quota.take(n); over != nil {
		b.spent = over
		b.end(over)
		return 0, errors.Join(over, b.Close())
	}
	return n, err
}
