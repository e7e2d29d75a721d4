// Package serving runs the HTTP servers of a manager on given listeners, TCP or not.
//
// It handles start, shutdown and timeouts of servers, and the TLS of the webhook server. Handlers do
// not belong here, and neither do certificates (sdk/manager/internal/webhookcert).
package serving

import (
	"net"
	"net/http"
	"time"

	"k8s.io/utils/ptr"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// ShutdownTimeout is how long a server waits for active requests before it stops.
	ShutdownTimeout = 5 * time.Second

	// API servers close connections that they do not use after 90 seconds, and must be the ones who do: they do not repeat a call of a
	// webhook on a connection that the server has just closed, and the user's request fails. The limit for headers counts as well,
	// because it begins with the connection, not with the request, and an API server also keeps connections that it has not used yet.
	idleTimeout       = 2 * time.Minute
	readHeaderTimeout = idleTimeout
	maxHeaderBytes    = 1 << 20
)

// New returns a server of a manager. It starts before caches and leader election, and stops last. name is
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
