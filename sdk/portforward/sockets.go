package portforward

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/gorilla/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// socketBuffer is the size of the read and write buffers of a WebSocket.
const socketBuffer = 33 << 10

// sockets opens a WebSocket through a given dialer. It implements the http.RoundTripper and ConnectionHolder that the
// negotiation in client-go requires.
type sockets struct {
	tls    *tls.Config
	proxy  func(*http.Request) (*url.URL, error)
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	socket *websocket.Conn
}

// DataBufferSize implements websocket.ConnectionHolder of client-go.
func (s *sockets) DataBufferSize() int { return socketBuffer }

// Connection implements websocket.ConnectionHolder of client-go.
func (s *sockets) Connection() *websocket.Conn { return s.socket }

// RoundTrip implements http.RoundTripper. It follows no redirects. If the server does not upgrade to a WebSocket, it may not
// support them: that is an UpgradeFailureError, without the body of the response.
func (s *sockets) RoundTrip(request *http.Request) (*http.Response, error) {
	protocols := request.Header[wsstream.WebSocketProtocolHeader]
	header := request.Header.Clone()
	delete(header, wsstream.WebSocketProtocolHeader) // The dialer adds it.
	address := *request.URL
	address.Scheme = map[string]string{"https": "wss", "http": "ws"}[address.Scheme]
	dialer := websocket.Dialer{
		NetDialContext: s.dial, Proxy: s.proxy, TLSClientConfig: s.tls, Subprotocols: protocols,
		ReadBufferSize: socketBuffer, WriteBufferSize: socketBuffer,
	}
	socket, response, err := dialer.DialContext(request.Context(), address.String(), header)
	if errors.Is(err, websocket.ErrBadHandshake) {
		_ = response.Body.Close() // The body is not used.
		return nil, &httpstream.UpgradeFailureError{Cause: fmt.Errorf("%w: %s", err, response.Status)}
	}
	if err != nil {
		return nil, err
	}
	if got := socket.Subprotocol(); len(protocols) > 0 && got != protocols[0] {
		_ = socket.Close() // It is not used.
		return nil, &httpstream.UpgradeFailureError{Cause: fmt.Errorf("the server does not support protocol %s", protocols[0])}
	}
	s.socket = socket
	return response, nil
}
