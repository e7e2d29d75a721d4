package dockertest

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Proxy forwards a socket to that of the container runtime. While it is cut, it is as if the runtime was stopped.
type Proxy struct {
	socket, target string
	t              *testing.T

	lock     sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	serving  sync.WaitGroup
}

// NewProxy starts a proxy, which ends with the test. The container runtime must be at a unix socket.
func NewProxy(t *testing.T) *Proxy {
	t.Helper()
	target, ok := strings.CutPrefix(Host(t), "unix://")
	if !ok {
		t.Skip("the container runtime is not at a unix socket")
	}
	p := &Proxy{socket: filepath.Join(t.TempDir(), "docker.sock"), target: target, t: t, conns: map[net.Conn]bool{}}
	p.Restore()
	t.Cleanup(p.Cut)
	return p
}

// Host returns the address of the proxy.
func (p *Proxy) Host() string { return "unix://" + p.socket }

// Cut closes all connections and removes the socket.
func (p *Proxy) Cut() {
	p.lock.Lock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for c := range p.conns {
		_ = c.Close()
	}
	p.lock.Unlock()
	p.serving.Wait()
}

// Restore makes the runtime available again.
func (p *Proxy) Restore() {
	p.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", p.socket)
	if err != nil {
		p.t.Fatal(err)
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.listener = listener
	p.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.serving.Go(func() { p.forward(conn) })
		}
	})
}

// forward forwards a connection until either side ends.
func (p *Proxy) forward(conn net.Conn) {
	to, err := (&net.Dialer{}).Dial("unix", p.target)
	if err != nil {
		_ = conn.Close()
		return
	}
	if !p.keep(conn, to) {
		return
	}
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{conn: to, to: conn} {
		both.Go(func() {
			_, _ = io.Copy(to, from)
			if half, ok := to.(*net.UnixConn); ok {
				_ = half.CloseWrite() // The other direction continues.
			}
		})
	}
	both.Wait()
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, c := range []net.Conn{conn, to} {
		_ = c.Close()
		delete(p.conns, c)
	}
}

// keep remembers connections, to cut them. If the proxy is cut already, it closes them.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, c := range conns {
		p.conns[c] = true
		if p.listener == nil {
			_ = c.Close()
			delete(p.conns, c)
		}
	}
	return p.listener != nil
}

// contextOf returns a context for cleaning up after a test.
func contextOf(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }
