package host

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// deadlines records the deadline of a connection.
type deadlines struct {
	net.Conn
	mu   sync.Mutex
	last time.Time
}

// SetDeadline implements net.Conn.
func (d *deadlines) SetDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = t
	return d.Conn.SetDeadline(t)
}

func (d *deadlines) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// Connections out of the process may be watches, or slow requests to an extension: only connecting has a
// deadline.
func TestForwardedConnectionsHaveNoDeadline(t *testing.T) {
	t.Parallel()
	clients, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer clients.Close()
	go func() {
		if conn, err := clients.Accept(); err == nil {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	near, far := net.Pipe()
	recorded := &deadlines{Conn: far}
	served := make(chan struct{})
	go func() {
		defer close(served)
		(&proxy{host: &host{Options: Options{Logger: logr.Discard()}}}).serve(t.Context(), recorded)
	}()
	// By name: a Service is asked for by its address.
	_, port, _ := net.SplitHostPort(clients.Addr().String())
	fmt.Fprintf(near, "CONNECT localhost:%s HTTP/1.1\r\nHost: localhost\r\n\r\n", port)
	in := bufio.NewReader(near)
	response, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("connecting: %v, %v", response, err)
	}
	<-served
	if left := recorded.now(); !left.IsZero() {
		t.Errorf("the connection ends in %s", time.Until(left))
	}
	if _, err := io.WriteString(near, "hello"); err != nil {
		t.Fatal(err)
	}
	echo := make([]byte, 5)
	if _, err := io.ReadFull(in, echo); err != nil || string(echo) != "hello" {
		t.Errorf("the answer is %q, %v", echo, err)
	}
	_ = near.Close()
}
