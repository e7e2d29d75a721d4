package serving_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/sdk/manager/internal/serving"
	"sigs.k8s.io/cluster-api/sdk/manager/internal/webhookcert"
)

// apiServerIdle is how long an API server keeps a connection that it does not use: the default of Go's http.Transport.
const apiServerIdle = 90 * time.Second

// pipes is a listener of connections in memory, whose deadlines follow the clock of synctest.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// An API server's connections end by its own decision, whether or not it has used them: it does not repeat a call on a connection that
// the server closes meanwhile.
func TestConnectionsOutliveTheAPIServersPatience(t *testing.T) {
	t.Parallel()
	certificates := webhookcert.NewMemory(clock.RealClock{}, "svc.ns.svc")
	for _, tc := range []struct {
		reason string
		uses   int // before the connection is idle
	}{
		{reason: "opened for a call that another connection served first", uses: 0},
		{reason: "used before", uses: 2},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
				server := serving.NewWebhooks(serving.WebhookOptions{Listener: listener, GetCertificate: certificates.GetCertificate})
				server.Register("/answer", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "yes") }))
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- server.Start(ctx) }()

				near, far := net.Pipe()
				listener.conns <- far
				conn := tls.Client(near, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
				if err := conn.Handshake(); err != nil {
					t.Fatal(err)
				}
				answers := bufio.NewReader(conn)
				for range tc.uses {
					call(t, conn, answers)
				}
				time.Sleep(apiServerIdle) // of the bubble
				call(t, conn, answers)
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
				stop()
				if err := <-ended; err != nil {
					t.Errorf("stopping: %v", err)
				}
			})
		})
	}
}

// call sends one request on a connection and reads the response.
func call(t *testing.T, conn net.Conn, answers *bufio.Reader) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://svc.ns.svc/answer", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := request.Write(conn); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(answers, request)
	if err != nil {
		t.Fatalf("the server closed the connection: %v", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", response.StatusCode, err)
	}
}
