package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// WebhookOptions configure a webhook server. Listener and GetCertificate are required.
type WebhookOptions struct {
	// Listener is closed by the server after it has been started.
	Listener net.Listener
	// GetCertificate is called for every handshake, so that certificates can be replaced without a restart.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// MinVersion is the lowest TLS version to accept; 0 means Go's default.
	MinVersion uint16
	// CipherSuites are the cipher suites to accept up to TLS 1.2, in any order; nil means Go's default.
	CipherSuites []uint16
}

// drainTimeout is how long a stopping server waits for clients to close their connections. API servers keep idle ones open,
// which are then closed: they are unlikely to be used at that moment.
const drainTimeout = time.Second

// Webhooks is a webhook.Server on any listener. controller-runtime's own only listens on TCP ports, and serves
// health checks by a TLS handshake with itself.
type Webhooks struct {
	options WebhookOptions
	mux     *http.ServeMux
	// registry is controller-runtime's server, which is not started: it counts requests per webhook and detects duplicates.
	registry webhook.Server
	started  atomic.Bool
}

var _ webhook.Server = &Webhooks{}

// NewWebhooks returns a webhook server.
func NewWebhooks(o WebhookOptions) *Webhooks {
	mux := http.NewServeMux()
	return &Webhooks{options: o, mux: mux, registry: webhook.NewServer(webhook.Options{WebhookMux: mux})}
}

// NeedLeaderElection returns false: all replicas serve webhooks.
func (*Webhooks) NeedLeaderElection() bool { return false }

// Register serves a hook at a path. It panics if the path is in use.
func (w *Webhooks) Register(path string, hook http.Handler) { w.registry.Register(path, hook) }

// WebhookMux returns the mux that hooks are registered in.
func (w *Webhooks) WebhookMux() *http.ServeMux { return w.mux }

// Start serves until ctx is done. Then it lets clients change to another replica, and finishes active requests until
// ShutdownTimeout.
func (w *Webhooks) Start(ctx context.Context) error {
	listener := tls.NewListener(w.options.Listener, &tls.Config{
		GetCertificate: w.options.GetCertificate,
		MinVersion:     w.options.MinVersion,
		CipherSuites:   w.options.CipherSuites,
		NextProtos:     []string{"h2", "http/1.1"},
	})
	w.started.Store(true)
	server := New("webhook", listener, drained(ctx, w.mux))
	open := newConnections()
	server.Server.ConnState = open.observe
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		open.drain(drainTimeout)
		stop()
	})()
	return server.Start(serving)
}

// drained adds to responses after the end of ctx that the connection closes (over HTTP/2, a GOAWAY frame): clients then send the
// next request to another replica. Closing a connection without it fails requests that have just been sent.
func drained(ctx context.Context, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if ctx.Err() != nil {
			response.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(response, request)
	})
}

// StartedChecker returns a check that passes after the server has started.
func (w *Webhooks) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !w.started.Load() {
			return errors.New("the webhook server has not been started yet")
		}
		return nil
	}
}
