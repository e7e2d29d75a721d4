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
	"syscall"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

const (
	// dialTimeout is the timeout for connecting, and for the TLS handshake.
	dialTimeout = 10 * time.Second
	// maxResponse is the maximum size of a response that is read as a whole.
	maxResponse = 16 << 20
	// maxErrorResponse is the maximum size of a response to a failed request.
	maxErrorResponse = 32 << 10
	// maxHeader is the maximum size of the header of a response.
	maxHeader = 64 << 10
	// idleTimeout is how long a connection without requests is kept open.
	idleTimeout = 90 * time.Second
)

// dialFunc connects to an address.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// guarded returns a dialer that only connects to addresses that the policy allows. They are checked after names were resolved, when the
// connection is opened, so that a name cannot resolve to one address for the check and to another one later.
func (p Policy) guarded() *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return &RejectedError{What: "its server has an address that is not an IP address"}
		}
		return p.address(to.Addr())
	}}
}

// netDialer is dialer for libraries that require a net.Dialer. With the process's own proxy, addresses are not checked: all of a
// cluster's connections go to the proxy.
func (p Policy) netDialer(config *rest.Config) *net.Dialer {
	if ownProxy(config) != "" {
		return &net.Dialer{Timeout: dialTimeout}
	}
	return p.guarded()
}

// dialer returns the function that connects to a cluster. The proxy in the process's own environment is configured by the operator, and may
// have any address.
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

// ownProxy returns host and port of the proxy for a server in the environment of the process, or empty.
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

// newTransport returns the transport of one connection. Those of client-go are shared and never closed; this
// one is closed, with its sockets, when the connection ends.
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

// RejectRedirects is for http.Client.CheckRedirect: API servers do not redirect, and a workload cluster must not choose the
// address of a request.
func RejectRedirects(*http.Request, []*http.Request) error {
	return &RejectedError{What: "a redirect to another address"}
}

// monitored limits the size of responses, and detects that connections are refused, and that watches
// receive nothing. Reflectors do not report that: they retry, with a stale cache, for as long as it lasts.
type monitored struct {
	transport http.RoundTripper
	end       context.CancelCauseFunc
	heard     func()
}

// RoundTrip implements http.RoundTripper.
func (a *monitored) RoundTrip(r *http.Request) (*http.Response, error) {
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
	// Clients sleep that long within the request: a workload cluster must not block our workers.
	response.Header.Del("Retry-After")
	b := &body{ReadCloser: response.Body, quota: newQuota("a response", maxResponse, 0), end: func(error) {}}
	switch q, ok := r.Context().Value(quotaKey{}).(*quota); {
	case response.StatusCode >= http.StatusBadRequest:
		b.quota = newQuota("a failure", maxErrorResponse, 0)
		if !isStatus(response.Header) {
			// Not an API server: its response must not end up in an error.
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

// WrappedRoundTripper returns the next transport, for libraries that look for the connections of a request, to cancel it.
func (a *monitored) WrappedRoundTripper() http.RoundTripper { return a.transport }

// isStatus reports whether a response can be a Status of Kubernetes.
func isStatus(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (kind == "application/json" || kind == "application/vnd.kubernetes.protobuf")
}

// body is the body of a response, limited by its quota.
type body struct {
	io.ReadCloser
	quota *quota
	heard func()
	// end ends the connection: code that reads a watch does not return errors as they are.
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
