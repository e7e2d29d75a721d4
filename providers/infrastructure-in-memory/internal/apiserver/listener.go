package apiserver

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
)

// conn is a client's connection to an endpoint, with the authenticated client.
type conn struct {
	net.Conn
	endpoint *Endpoint
	// client is the user of the client's certificate, once verified.
	client atomic.Pointer[verified]
	// server are the credentials of the API server that answers, if they were set when the connection was opened.
	server atomic.Pointer[identity]
	once   sync.Once
}

// Close closes the connection and removes it from the endpoint.
func (c *conn) Close() error {
	c.once.Do(func() { c.endpoint.forget(c) })
	return c.Conn.Close()
}

type connKey struct{}

// withConn is the http.Server's ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

// listener passes the connections of an endpoint to the HTTP server.
type listener struct {
	net.Listener
	endpoint *Endpoint
}

// Accept returns the next connection. While the cluster does not serve, connections are closed immediately, which is as
// close to refused connections as a bound port can get.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.endpoint.admit(accepted); c != nil {
			return c, nil
		}
	}
}

// pipes is the listener for connections within the process, from port forwarding.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{accept: make(chan net.Conn), closed: make(chan struct{})} }

// dial connects to an endpoint.
func (p *pipes) dial(ctx context.Context, e *Endpoint) (net.Conn, error) {
	client, server := net.Pipe()
	c := e.admit(server)
	if c == nil {
		return nil, net.ErrClosed
	}
	select {
	case p.accept <- c:
		return client, nil
	case <-p.closed:
	case <-ctx.Done():
	}
	_ = c.Close() // It has not been used.
	return nil, net.ErrClosed
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "port-forward", Net: "pipe"} }
