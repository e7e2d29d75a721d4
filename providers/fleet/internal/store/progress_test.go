package store

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// slowConn is a connection whose peer takes and sends a piece at a time, each after a pause on the test's clock. Like a real one, it fails
// after its deadline.
type slowConn struct {
	net.Conn
	rest            io.Reader
	clock, deadline time.Time
	pause           time.Duration
	written         int
}

func (c *slowConn) SetDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

func (c *slowConn) move() error {
	if c.clock = c.clock.Add(c.pause); c.clock.After(c.deadline) {
		return io.ErrNoProgress
	}
	return nil
}

func (c *slowConn) Read(p []byte) (int, error) {
	if err := c.move(); err != nil {
		return 0, err
	}
	return c.rest.Read(p[:1])
}

func (c *slowConn) Write(p []byte) (int, error) {
	if err := c.move(); err != nil {
		return 0, err
	}
	c.written += len(p)
	return len(p), nil
}

// TestSlowButMoving: what takes longer in sum than the time without progress goes on, as long as something moves within it.
func TestSlowButMoving(t *testing.T) {
	const idle, pieces = time.Minute, 12
	for _, test := range []struct {
		reason string
		pause  time.Duration
		fails  bool
	}{
		{"something moves every 50 seconds", 50 * time.Second, false},
		{"nothing moves for longer than a minute", 61 * time.Second, true},
	} {
		slow := &slowConn{rest: strings.NewReader(strings.Repeat("x", pieces)), pause: test.pause}
		c := &progressing{Conn: slow, idle: idle, now: func() time.Time { return slow.clock }}
		got, err := io.ReadAll(c)
		if (err != nil) != test.fails || !test.fails && len(got) != pieces {
			t.Errorf("%s: read %q, %v", test.reason, got, err)
		}
		large := make([]byte, pieces<<16)
		n, err := c.Write(large)
		if (err != nil) != test.fails || !test.fails && (n != len(large) || slow.written != n) {
			t.Errorf("%s: wrote %d of %d bytes, %v", test.reason, n, len(large), err)
		}
	}
}
