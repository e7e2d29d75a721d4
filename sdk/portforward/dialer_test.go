package portforward

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

var pod = types.NamespacedName{Namespace: "kube-system", Name: "etcd-a"}

// apiServer forwards port 2379 of Pod etcd-a to an echo, and rejects all other ports.
type apiServer struct {
	// old is true if it does not support WebSockets.
	old bool
	// unresponsive blocks requests, if it is not nil.
	unresponsive chan struct{}

	mu       sync.Mutex
	requests []string
	// ended receives a value when a forwarded connection ends.
	ended chan struct{}
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	if s.unresponsive != nil {
		<-s.unresponsive
		return
	}
	if r.URL.Path != "/api/v1/namespaces/kube-system/pods/etcd-a/portforward" {
		http.Error(w, "Pod not found", http.StatusNotFound)
		return
	}
	connection := s.upgrade(w, r)
	if connection == nil {
		return
	}
	<-connection.CloseChan()
	s.ended <- struct{}{}
}

func (s *apiServer) upgrade(w http.ResponseWriter, r *http.Request) httpstream.Connection {
	accept := echo()
	if !websocket.IsWebSocketUpgrade(r) {
		if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
			return nil
		}
		return spdy.NewResponseUpgrader().UpgradeResponse(w, r, accept)
	}
	if s.old {
		http.Error(w, "unable to upgrade", http.StatusBadRequest)
		return nil
	}
	upgrader := websocket.Upgrader{Subprotocols: []string{websocketProtocol}, CheckOrigin: func(*http.Request) bool { return true }}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil
	}
	connection, err := spdy.NewServerConnection(portforward.NewTunnelingConnection("server", socket), accept)
	if err != nil {
		return nil
	}
	return connection
}

// echo sends back the data of a data stream, or reports on the error stream that the port is closed.
func echo() httpstream.NewStreamHandler {
	return func(stream httpstream.Stream, replied <-chan struct{}) error {
		kind, port := stream.Headers().Get(corev1.StreamType), stream.Headers().Get(corev1.PortHeader)
		go func() {
			<-replied
			switch {
			case kind == corev1.StreamTypeData && port == "2379":
				_, _ = io.Copy(stream, stream)
			case kind == corev1.StreamTypeError && port != "2379":
				_, _ = fmt.Fprintf(stream, "port %s: connection refused", port)
				_ = stream.Close()
			}
		}()
		return nil
	}
}

func (s *apiServer) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func dialer(t *testing.T, s *apiServer) *Dialer {
	t.Helper()
	s.ended = make(chan struct{}, 10)
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	d, err := New(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const (
	overWebsocket = "GET /api/v1/namespaces/kube-system/pods/etcd-a/portforward"
	overSPDY      = "POST /api/v1/namespaces/kube-system/pods/etcd-a/portforward"
)

func TestDial(t *testing.T) {
	tests := map[string]struct {
		reason string
		server *apiServer
		want   []string
	}{
		"WebSocket": {
			reason: "Every connection is one request.",
			server: &apiServer{}, want: []string{overWebsocket, overWebsocket},
		},
		"SPDY": {
			reason: "WebSockets are tried only once with an old API server.",
			server: &apiServer{old: true}, want: []string{overWebsocket, overSPDY, overSPDY},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := dialer(t, tc.server)
			for range 2 {
				speak(t, d)
				<-tc.server.ended
			}
			if diff := cmp.Diff(tc.want, tc.server.seen()); diff != "" {
				t.Errorf("%s\nrequests: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// speak sends data over a connection and reads it back. The context of Dial has ended by then.
func speak(t *testing.T, d *Dialer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	c, err := d.Dial(ctx, pod, 2379)
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{"hello", strings.Repeat("much", 50_000)} {
		go c.Write([]byte(said)) // Reading it back fails if this does.
		heard := make([]byte, len(said))
		if _, err := io.ReadFull(c, heard); err != nil || string(heard) != said {
			t.Errorf("sent %d bytes and received others (%v)", len(said), err)
		}
	}
	reading := make(chan error)
	go func() {
		_, err := c.Read(make([]byte, 1))
		reading <- err
	}()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-reading; err == nil {
		t.Error("a read continued after the connection was closed")
	}
	if err := c.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestClosedPort(t *testing.T) {
	d := dialer(t, &apiServer{})
	c, err := d.Dial(t.Context(), pod, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() // It has ended by then.
	_, err = c.Read(make([]byte, 1))
	const want = "port forwarding to kube-system/etcd-a:1 ended: port 1: connection refused"
	if err == nil || err.Error() != want {
		t.Errorf("Read(): %v, want %q", err, want)
	}
}

func TestDialErrors(t *testing.T) {
	tests := map[string]struct {
		reason string
		pod    types.NamespacedName
		server *apiServer
		want   string
	}{
		"NoPod": {
			reason: "The error contains the reason of the API server.", server: &apiServer{},
			pod: types.NamespacedName{Namespace: "kube-system", Name: "etcd-b"}, want: "forwarding port 2379 of Pod kube-system/etcd-b: unable to upgrade connection: Pod not found",
		},
		"Silent": {
			reason: "The context bounds dialing.",
			server: &apiServer{unresponsive: make(chan struct{})}, pod: pod, want: "i/o timeout",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d, ctx := dialer(t, tc.server), t.Context()
			if tc.server.unresponsive != nil {
				t.Cleanup(func() { close(tc.server.unresponsive) })
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
			}
			_, err := d.Dial(ctx, tc.pod, 2379)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nDial(): %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// A SPDY handshake cannot be interrupted: callers return in time, and the number of handshakes is limited.
func TestUnresponsiveOldServer(t *testing.T) {
	server := &apiServer{unresponsive: make(chan struct{})}
	d := dialer(t, server)
	t.Cleanup(func() { close(server.unresponsive) })
	d.onlySPDY.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var dialing sync.WaitGroup
	for range 3 * concurrentDials {
		dialing.Go(func() {
			if _, err := d.Dial(ctx, pod, 2379); err == nil {
				t.Error("there is a connection to an unresponsive server")
			}
		})
	}
	dialing.Wait()
	if begun := len(server.seen()); begun > concurrentDials {
		t.Errorf("%d handshakes, want at most %d", begun, concurrentDials)
	}
}

// Addresses are checked after names are resolved, as for all connections to workload clusters.
func TestAddressesAreChecked(t *testing.T) {
	forbidden := errors.New("address not permitted")
	for _, onlySPDY := range []bool{false, true} {
		server := &apiServer{}
		d := dialer(t, server)
		d.onlySPDY.Store(onlySPDY)
		d.net = &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
			if address == d.base.Host {
				return forbidden
			}
			return nil
		}}
		if _, err := d.Dial(t.Context(), pod, 2379); err == nil || !strings.Contains(err.Error(), forbidden.Error()) {
			t.Errorf("SPDY %t: error %v, want %q", onlySPDY, err, forbidden)
		}
		if seen := server.seen(); len(seen) > 0 {
			t.Errorf("SPDY %t: requests %q", onlySPDY, seen)
		}
	}
}

// A workload cluster must not choose where to connect to.
func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, onlySPDY := range []bool{false, true} {
		target := &apiServer{}
		elsewhere := dialer(t, target)
		server := httptest.NewTLSServer(http.RedirectHandler(elsewhere.base.JoinPath("stolen").String(), http.StatusTemporaryRedirect))
		t.Cleanup(server.Close)
		d, err := New(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d.onlySPDY.Store(onlySPDY)
		if _, err := d.Dial(t.Context(), pod, 2379); err == nil {
			t.Errorf("SPDY %t: it connected", onlySPDY)
		}
		if seen := target.seen(); len(seen) > 0 {
			t.Errorf("SPDY %t: the redirect was followed: %q", onlySPDY, seen)
		}
	}
}
