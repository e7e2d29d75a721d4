package host

import (
	"context"
	"errors"
	"net"
	"sync"
)

// queue is a listener whose connections come from this process instead of the network.
type queue struct {
	name  string
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

var _ net.Listener = (*queue)(nil)

func newQueue(name string) *queue {
	return &queue{name: name, conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case conn := <-q.conns:
		return conn, nil
	case <-q.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.done) })
	return nil
}

// Addr implements net.Listener. The address is a name that cannot be dialed.
func (q *queue) Addr() net.Addr { return queueAddr(q.name) }

// deliver hands a connection to Accept, which owns it if deliver returns nil.
func (q *queue) deliver(ctx context.Context, conn net.Conn) error {
	select {
	case q.conns <- conn:
		return nil
	case <-q.done:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// queueAddr is the address of a queue.
type queueAddr string

// Network implements net.Addr.
func (queueAddr) Network() string { return "in-process" }

// String implements net.Addr.
func (a queueAddr) String() string { return string(a) }

// listeners are the open ports of an instance.
type listeners struct {
	mu      sync.Mutex
	open    map[string]*queue
	changed chan struct{} // closed and replaced whenever open changes
}

func newListeners() *listeners {
	return &listeners{open: map[string]*queue{}, changed: make(chan struct{})}
}

// listen opens a port, and replaces an earlier listener of that name.
func (l *listeners) listen(port string) (net.Listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.open[port]; old != nil {
		_ = old.Close()
	}
	q := newQueue(port)
	l.open[port] = q
	close(l.changed)
	l.changed = make(chan struct{})
	return q, nil
}

// closeAll closes the listeners that the component left open.
func (l *listeners) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for port, q := range l.open {
		_ = q.Close()
		delete(l.open, port)
	}
}

// errStopping is returned by deliver when the instance no longer accepts connections.
var errStopping = errors.New("the component is stopping")

// deliver delivers a connection to a port. It waits for the component to open it, and retries when the component closes
// it, until the context ends or the instance stops.
func (l *listeners) deliver(ctx context.Context, port string, conn net.Conn, stopping <-chan struct{}) error {
	for {
		l.mu.Lock()
		q, changed := l.open[port], l.changed
		l.mu.Unlock()
		if q != nil {
			if err := q.deliver(ctx, conn); err == nil || ctx.Err() != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-stopping:
			return errStopping
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
