package portforward

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"k8s.io/streaming/pkg/httpstream"

	"sigs.k8s.io/cluster-api/provider/crash"
)

// maxReport bounds how much of a report of failure is read.
const maxReport = 4 << 10

// conn is one forwarded connection.
type conn struct {
	streams httpstream.Connection
	data    httpstream.Stream
	to      address

	mu sync.Mutex
	// failure is what the other side reported.
	failure error
	once    sync.Once
}

// listen waits for the report of a failure, which is also its end, or for the end of the connection.
func (c *conn) listen(failure io.Reader) {
	if err := reported(failure); err != nil {
		c.fail(err)
	}
}

func reported(failure io.Reader) (err error) {
	defer crash.Recover("reading the report of a failure", &err)
	report, _ := io.ReadAll(io.LimitReader(failure, maxReport)) // What came before an error is all there is.
	if len(report) == 0 {
		return nil
	}
	return errors.New(string(report))
}

// fail ends the connection, for a reason that reads and writes return from now on.
func (c *conn) fail(why error) {
	c.mu.Lock()
	c.failure = why
	c.mu.Unlock()
	_ = c.Close() // It is broken anyway.
}

// explain makes the end of the connection into the reason for it, if there is one.
func (c *conn) explain(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.failure != nil {
		return fmt.Errorf("port forwarding to %s ended: %w", c.to, c.failure)
	}
	return err
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.data.Read(p)
	return n, c.explain(err)
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.data.Write(p)
	return n, c.explain(err)
}

// Close implements net.Conn. It ends pending reads and writes, and may be called again.
func (c *conn) Close() error {
	var err error
	c.once.Do(func() { err = c.streams.Close() })
	return err
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return address("port-forward") }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.to }

// SetDeadline implements net.Conn, and does nothing: streams have no deadlines. Whoever cannot wait closes the
// connection.
func (c *conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn, see SetDeadline.
func (c *conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn, see SetDeadline.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// address is a Pod and its port.
type address string

// Network implements net.Addr.
func (address) Network() string { return "port-forward" }

// String implements net.Addr.
func (a address) String() string { return string(a) }
