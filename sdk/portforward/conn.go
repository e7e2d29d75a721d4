package portforward

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"k8s.io/streaming/pkg/httpstream"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// maxReport is the maximum length of an error message from the API server.
const maxReport = 4 << 10

// conn is a forwarded connection.
type conn struct {
	streams httpstream.Connection
	data    httpstream.Stream
	to      address

	mu sync.Mutex
	// failure is the error that the API server has reported.
	failure error
	once    sync.Once
}

// listen waits until the API server reports an error, which ends the connection, or until the connection ends.
func (c *conn) listen(failure io.Reader) {
	if err := reported(failure); err != nil {
		c.fail(err)
	}
}

// reported reads the error that the API server reports, nil if there is none.
func reported(failure io.Reader) (err error) {
	defer failsafe.Recover("reading the error of a forwarded connection", &err)
	report, _ := io.ReadAll(io.LimitReader(failure, maxReport)) // After an error, the message may be incomplete.
	if len(report) == 0 {
		return nil
	}
	return errors.New(string(report))
}

// fail closes the connection. Reads and writes return the reason from now on.
func (c *conn) fail(why error) {
	c.mu.Lock()
	c.failure = why
	c.mu.Unlock()
	_ = c.Close() // It is broken anyway.
}

// explain replaces the error of a closed connection with the reason, if there is one.
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

// SetDeadline implements net.Conn. It does nothing, because streams have no deadlines: close the connection instead.
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
