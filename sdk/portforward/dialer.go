package portforward

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
	streamspdy "k8s.io/streaming/pkg/httpstream/spdy"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/remote"
)

const (
	// websocketProtocol is the name of the port forwarding protocol in a WebSocket.
	websocketProtocol = "SPDY/3.1+" + portforward.PortForwardProtocolV1Name
	// concurrentDials bounds concurrent SPDY handshakes. They cannot be interrupted, so an unresponsive server can occupy this
	// many goroutines.
	concurrentDials = 8
)

// Dialer opens connections through one API server.
type Dialer struct {
	config *rest.Config
	net    *net.Dialer
	base   *url.URL
	// onlySPDY is true if the API server is too old for WebSockets.
	onlySPDY atomic.Bool
	dialing  chan struct{}
}

// New returns a Dialer for the API server in config. It connects through the net.Dialer; nil is one that permits all addresses.
// The port forwarding of client-go is not used because it ignores config.Dial.
func New(config *rest.Config, through *net.Dialer) (*Dialer, error) {
	if through == nil {
		through = &net.Dialer{}
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	return &Dialer{config: config, net: through, base: base, dialing: make(chan struct{}, concurrentDials)}, nil
}

// Dial connects to a port of a Pod. The context bounds only connecting; the connection stays open until it is closed. If
// nothing listens on the port, the first read returns an error.
func (d *Dialer) Dial(ctx context.Context, pod types.NamespacedName, port int) (net.Conn, error) {
	streams, err := d.connect(ctx, d.base.JoinPath("api", "v1", "namespaces", pod.Namespace, "pods", pod.Name, "portforward"))
	if err != nil {
		return nil, fmt.Errorf("forwarding port %d of Pod %s: %w", port, pod, err)
	}
	c, err := open(streams, pod.String(), port)
	if err != nil {
		_ = streams.Close() // It has failed already.
		return nil, fmt.Errorf("forwarding port %d of Pod %s: %w", port, pod, err)
	}
	return c, nil
}

// connect opens a connection for streams, over a WebSocket if the API server supports it.
func (d *Dialer) connect(ctx context.Context, address *url.URL) (httpstream.Connection, error) {
	if !d.onlySPDY.Load() {
		streams, err := d.overWebsocket(ctx, address)
		if !httpstream.IsUpgradeFailure(err) && !httpstream.IsHTTPSProxyError(err) {
			return streams, err
		}
	}
	streams, err := d.overSPDY(ctx, address)
	if err == nil {
		d.onlySPDY.Store(true)
	}
	return streams, err
}

func (d *Dialer) overWebsocket(ctx context.Context, address *url.URL) (httpstream.Connection, error) {
	socketed := &sockets{proxy: d.proxy(), dial: d.net.DialContext}
	var err error
	if socketed.tls, err = rest.TLSConfigFor(d.config); err != nil {
		return nil, err
	}
	transport, err := rest.HTTPWrappersForConfig(d.config, socketed)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	socket, err := websocket.Negotiate(transport, socketed, request, websocketProtocol)
	if err != nil {
		return nil, err
	}
	return streamspdy.NewClientConnectionWithPings(portforward.NewTunnelingConnection("client", socket), portforward.PingPeriod)
}

// overSPDY returns when the context ends. A connection that is established later is closed.
func (d *Dialer) overSPDY(ctx context.Context, address *url.URL) (httpstream.Connection, error) {
	select {
	case d.dialing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type outcome struct {
		streams httpstream.Connection
		err     error
	}
	done := make(chan outcome)
	go func() {
		defer func() { <-d.dialing }()
		streams, err := d.guardedSPDY(ctx, address)
		select {
		case done <- outcome{streams, err}:
		case <-ctx.Done():
			if err == nil {
				_ = streams.Close() // The caller has returned.
			}
		}
	}()
	select {
	case o := <-done:
		return o.streams, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// guardedSPDY converts a panic into an error: on its own goroutine, a panic would end the process.
func (d *Dialer) guardedSPDY(ctx context.Context, address *url.URL) (streams httpstream.Connection, err error) {
	defer failsafe.Recover("negotiating SPDY", &err)
	return d.negotiateSPDY(ctx, address)
}

func (d *Dialer) negotiateSPDY(ctx context.Context, address *url.URL) (httpstream.Connection, error) {
	tlsConfig, err := rest.TLSConfigFor(d.config)
	if err != nil {
		return nil, err
	}
	upgrader, err := streamspdy.NewRoundTripperWithConfig(streamspdy.RoundTripperConfig{
		TLS: tlsConfig, Proxier: d.proxy(), PingPeriod: portforward.PingPeriod,
	})
	if err != nil {
		return nil, err
	}
	upgrader.Dialer = d.net
	transport, err := rest.HTTPWrappersForConfig(d.config, upgrader)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), nil)
	if err != nil {
		return nil, err
	}
	streams, _, err := spdy.NegotiateStreaming(spdy.NewUpgraderForStreaming(upgrader),
		&http.Client{Transport: transport, CheckRedirect: remote.RejectRedirects}, request, portforward.PortForwardProtocolV1Name)
	return streams, err
}

// proxy returns the function that selects the proxy of a request.
func (d *Dialer) proxy() func(*http.Request) (*url.URL, error) {
	if d.config.Proxy != nil {
		return d.config.Proxy
	}
	return utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
}

// open opens the two streams of a forwarded connection. A connection could have more streams, but then one forwarded connection
// could block another.
func open(streams httpstream.Connection, pod string, port int) (*conn, error) {
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	failure, err := streams.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("creating the error stream: %w", err)
	}
	if err := failure.Close(); err != nil { // It is read only.
		return nil, fmt.Errorf("closing our side of the error stream: %w", err)
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := streams.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("creating the data stream: %w", err)
	}
	c := &conn{streams: streams, data: data, to: address(net.JoinHostPort(pod, strconv.Itoa(port)))}
	go c.listen(failure)
	return c, nil
}
