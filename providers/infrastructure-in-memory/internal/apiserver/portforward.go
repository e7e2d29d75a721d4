package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/portforward"
	clientportforward "k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Ports of simulated Pods: etcd and the API server, both served by this endpoint.
var forwardablePorts = map[string]string{"etcd": "2379", "kube-apiserver": "6443"}

// portForward forwards a port of a Pod through the API server's connection. It uses SPDY, either directly or, as newer
// clients prefer, within a WebSocket.
func (c *call) portForward() error {
	stored, err := c.group.Get(c.key())
	if err != nil {
		return err
	}
	var pod corev1.Pod
	if err := stored.Into(&pod); err != nil {
		return err
	}
	if pod.Spec.NodeName != "" && c.group.Dead(pod.Spec.NodeName) {
		return apierrors.NewInternalError(fmt.Errorf("error dialing backend: machine %s does not respond", pod.Spec.NodeName))
	}
	f := &forwarding{
		port:     forwardablePorts[pod.Labels["component"]],
		pod:      pod.Name,
		dial:     func(ctx context.Context) (net.Conn, error) { return c.server.pipes.dial(ctx, c.endpoint) },
		halfOpen: map[string]map[string]httpstream.Stream{},
	}
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(c.r.Context()))
	defer f.cancel()
	connection, err := c.upgrade(f.accept)
	if err != nil || connection == nil {
		return err
	}
	defer connection.Close() //nolint:errcheck // nothing to do about an error
	select {
	case <-connection.CloseChan():
	case <-c.group.Closed():
	}
	return nil
}

// upgrade upgrades the request's connection to SPDY streams. Nil without an error means that the error response has been
// sent.
func (c *call) upgrade(accept httpstream.NewStreamHandler) (httpstream.Connection, error) {
	w := c.w
	if recorded, ok := w.(*recorder); ok {
		recorded.answered(http.StatusSwitchingProtocols)
		w = recorded.ResponseWriter
	}
	if !websocket.IsWebSocketUpgrade(c.r) {
		if _, err := httpstream.Handshake(c.r, w, []string{portforward.PortForwardV1Name}); err != nil {
			return nil, nil // The handshake has sent a response.
		}
		return spdy.NewResponseUpgrader().UpgradeResponse(w, c.r, accept), nil
	}
	upgrader := websocket.Upgrader{
		Subprotocols: []string{portforward.WebsocketsSPDYTunnelingPortForwardV1},
		CheckOrigin:  func(*http.Request) bool { return true }, // Clients authenticate by certificate, not by cookie.
	}
	socket, err := upgrader.Upgrade(w, c.r, nil)
	if err != nil {
		return nil, nil // The upgrader has sent a response.
	}
	return spdy.NewServerConnection(clientportforward.NewTunnelingConnection("server", socket), accept)
}

// forwarding is a port-forwarding session. Each forwarded connection is a pair of streams with the same request ID: one
// for errors, one for data.
type forwarding struct {
	ctx    context.Context //nolint:containedctx // It bounds the streams of this request.
	cancel context.CancelFunc
	port   string
	pod    string
	dial   func(context.Context) (net.Conn, error)

	mu       sync.Mutex
	halfOpen map[string]map[string]httpstream.Stream
}

// accept adds a new stream, and starts forwarding when a pair is complete.
func (f *forwarding) accept(stream httpstream.Stream, replySent <-chan struct{}) error {
	port, kind := stream.Headers().Get(corev1.PortHeader), stream.Headers().Get(corev1.StreamType)
	if port == "" {
		return fmt.Errorf("missing header %s", corev1.PortHeader)
	}
	if kind != corev1.StreamTypeError && kind != corev1.StreamTypeData {
		return fmt.Errorf("header %s is %q", corev1.StreamType, kind)
	}
	id := stream.Headers().Get(corev1.PortForwardRequestIDHeader)

	f.mu.Lock()
	defer f.mu.Unlock()
	if f.halfOpen[id] == nil {
		f.halfOpen[id] = map[string]httpstream.Stream{}
	}
	pair := f.halfOpen[id]
	if pair[kind] != nil {
		return fmt.Errorf("stream %q of request %q already exists", kind, id)
	}
	pair[kind] = stream
	if len(pair) < 2 {
		return nil
	}
	delete(f.halfOpen, id)
	go func() {
		defer f.recoverPanic()
		<-replySent
		f.forward(pair[corev1.StreamTypeData], pair[corev1.StreamTypeError], port)
	}()
	return nil
}

func (f *forwarding) forward(data, failure httpstream.Stream, port string) {
	defer failure.Close() // Fails if the client is gone.
	defer data.Reset()    //nolint:errcheck // As above.
	if port != f.port {
		_, _ = fmt.Fprintf(failure, "error forwarding port %s to pod %s: connection refused", port, f.pod)
		return
	}
	target, err := f.dial(f.ctx)
	if err != nil {
		_, _ = fmt.Fprintf(failure, "error forwarding port %s to pod %s: %v", port, f.pod, err)
		return
	}
	// Both directions end when either side or the request ends.
	stop := context.AfterFunc(f.ctx, func() { _ = target.Close() })
	defer stop()
	done := make(chan error, 2)
	go func() { defer f.recoverPanic(); done <- transfer(target, data) }()
	go func() { defer f.recoverPanic(); done <- transfer(data, target) }()
	err = <-done
	_ = target.Close()
	if err != nil && !strings.Contains(err.Error(), "closed") {
		_, _ = fmt.Fprintf(failure, "error forwarding port %s to pod %s: %v", port, f.pod, err)
	}
}

// recoverPanic recovers a panic on a forwarding goroutine, which would crash the process: it ends the forwarding.
func (f *forwarding) recoverPanic() {
	if problem := recover(); problem != nil {
		f.cancel()
	}
}

func transfer(to io.Writer, from io.Reader) error {
	_, err := io.Copy(to, from)
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
