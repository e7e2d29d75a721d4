package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// WebhookOptions are what a webhook server is made of. Listener and GetCertificate are required.
type WebhookOptions struct {
	// Listener is served and closed by the server once it is started.
	Listener net.Listener
	// GetCertificate is asked at every handshake, so that a new certificate needs no restart.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// MinVersion is the lowest TLS version to accept; 0 is Go's default.
	MinVersion uint16
	// CipherSuites are those to accept up to TLS 1.2, in no order; nil is Go's choice.
	CipherSuites []uint16
}

// Webhooks is a webhook.Server on any listener. controller-runtime's own listens on TCP ports only, and answers
// health checks by a TLS handshake with itself every time.
type Webhooks struct {
	options WebhookOptions
	mux     *http.ServeMux
	// registry is controller-runtime's server, never started: it counts requests per webhook and finds duplicates.
	registry webhook.Server
	started  atomic.Bool
}

var _ webhook.Server = &Webhooks{}

// NewWebhooks prepares a webhook server.
func NewWebhooks(o WebhookOptions) *Webhooks {
	mux := http.NewServeMux()
	return &Webhooks{options: o, mux: mux, registry: webhook.NewServer(webhook.Options{WebhookMux: mux})}
}

// NeedLeaderElection is false: every replica answers.
func (*Webhooks) NeedLeaderElection() bool { return false }

// Register serves a hook under a path. It panics when the path is taken.
func (w *Webhooks) Register(path string, hook http.Handler) { w.registry.Register(path, hook) }

// WebhookMux is where hooks are registered.
func (w *Webhooks) WebhookMux() *http.ServeMux { return w.mux }

// Start serves until ctx is done and the requests it then answers are finished, or ShutdownTimeout has passed.
func (w *Webhooks) Start(ctx context.Context) error {
	listener := tls.NewListener(w.options.Listener, &tls.Config{
		GetCertificate: w.options.GetCertificate,
		MinVersion:     w.options.MinVersion,
		CipherSuites:   w.options.CipherSuites,
		NextProtos:     []string{"h2", "http/1.1"},
	})
	w.started.Store(true)
	return New("webhook", listener, w.mux).Start(ctx)
}

// StartedChecker is healthy once the server accepts connections.
func (w *Webhooks) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !w.started.Load() {
			return errors.New("the webhook server has not been started yet")
		}
		return nil
	}
}
