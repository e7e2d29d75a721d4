// Package serving runs the HTTP servers of a manager on listeners that somebody else opened, TCP or not.
//
// It knows how a server starts, stops and how long it waits, and the TLS of the webhook server. What is served does
// not belong here, and neither do certificates (provider/manager/internal/webhookcert).
package serving

import (
	"net"
	"net/http"
	"time"

	"k8s.io/utils/ptr"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// ShutdownTimeout is how long a server that is told to stop waits for requests that it is answering.
	ShutdownTimeout = 5 * time.Second

	// API servers and kubelets keep connections for 90 seconds; the header limits are generous for what they send.
	idleTimeout       = 90 * time.Second
	readHeaderTimeout = 30 * time.Second
	maxHeaderBytes    = 1 << 20
)

// New is a server as managers run them: it starts before caches fill and before leadership, and stops last. Name is
// for the log.
func New(name string, listener net.Listener, handler http.Handler) *ctrlmanager.Server {
	return &ctrlmanager.Server{
		Name: name,
		Server: &http.Server{
			Handler:           handler,
			IdleTimeout:       idleTimeout,
			ReadHeaderTimeout: readHeaderTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
		},
		Listener:        listener,
		ShutdownTimeout: ptr.To(ShutdownTimeout),
	}
}
