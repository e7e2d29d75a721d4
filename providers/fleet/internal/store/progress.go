package store

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"
)

// maxResponse is the largest response that is no object, in bytes. A page of a list needs about 1 MiB.
const maxResponse = 8 << 20

// newTransport returns the transport of requests to an S3 service. A connection on which nothing moves for a time fails: what counts is
// progress, since a good upload may take hours.
func newTransport(idle time.Duration, config *tls.Config, allowLocal bool) http.RoundTripper {
	dialer, guarded, guard := &net.Dialer{Timeout: idle}, &net.Dialer{Timeout: idle, Control: check}, &guard{}
	return &bounded{&http.Transport{
		Proxy: guard.proxy,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			by := guarded
			if allowLocal || guard.isProxy(address) {
				by = dialer
			}
			conn, err := by.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &progressing{Conn: conn, idle: idle, now: time.Now}, nil
		},
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   idle,
		ResponseHeaderTimeout: idle,
		IdleConnTimeout:       idle,
		MaxIdleConnsPerHost:   4,
		// An object is returned as it is stored.
		DisableCompression: true,
	}}
}

// progressing is a connection on which something must move within a time.
type progressing struct {
	net.Conn
	idle time.Duration
	now  func() time.Time
}

// touch extends the deadline, also that of a pending read: an answer can be expected once the request is written.
func (c *progressing) touch() { _ = c.SetDeadline(c.now().Add(c.idle)) }

// Read implements io.Reader.
func (c *progressing) Read(p []byte) (int, error) {
	c.touch()
	return c.Conn.Read(p)
}

// Write implements io.Writer.
func (c *progressing) Write(p []byte) (int, error) {
	// What the system takes at once can be megabytes; with small pieces, each shows progress.
	const piece = 64 << 10
	written := 0
	for {
		c.touch()
		n, err := c.Conn.Write(p[written:min(len(p), written+piece)])
		written += n
		if err != nil || written == len(p) {
			c.touch()
			return written, err
		}
	}
}

// bounded limits the size of responses, except that of objects.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err != nil || (request.Method == http.MethodGet && response.StatusCode == http.StatusOK && request.URL.RawQuery == "") {
		return response, err
	}
	response.Body = &struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxResponse), response.Body}
	return response, nil
}
