package serving

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// connections counts the connections of a server.
type connections struct {
	mu    sync.Mutex
	open  map[net.Conn]struct{}
	empty chan struct{} // closed after drain was called and there are no connections; nil before
}

func newConnections() *connections {
	return &connections{open: map[net.Conn]struct{}{}}
}

// observe is the ConnState of the server.
func (c *connections) observe(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state != http.StateClosed && state != http.StateHijacked {
		c.open[conn] = struct{}{}
		return
	}
	delete(c.open, conn)
	if len(c.open) == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

// drain returns when there are no connections, or after the timeout. It is called once.
func (c *connections) drain(timeout time.Duration) {
	c.mu.Lock()
	empty := make(chan struct{})
	if c.empty = empty; len(c.open) == 0 {
		close(empty)
		c.empty = nil
	}
	c.mu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-empty:
	case <-timer.C:
	}
}
