package apiserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/change"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/columns"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
)

// etcdPrefix is the prefix of an etcd member's server name and Pod name.
const etcdPrefix = "etcd-"

// protocols are the ALPN protocols. Port forwarding requires HTTP/1.1.
var protocols = []string{"h2", "http/1.1"}

// Options are the dependencies of a Server.
type Options struct {
	// Clock is for watches and observations. Default: the real clock.
	Clock clock.Clock
	// Logger logs internal errors. Default: discarded.
	Logger logr.Logger
	// Observer is called for every completed request. Default: none.
	Observer Observer
}

// complaints handles the error log of an http.Server.
type complaints struct{ logger logr.Logger }

// Write implements io.Writer. It drops failed handshakes and logs panics of handlers.
func (c complaints) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if strings.Contains(text, "TLS handshake error") {
		c.logger.V(4).Info("Client did not connect to simulated API server", "reason", text)
	} else {
		c.logger.Error(errors.New(text), "Simulated API server failed")
	}
	return len(line), nil
}

// Server serves the APIs of any number of workload clusters. It is safe for concurrent use.
type Server struct {
	clock    clock.Clock
	logger   logr.Logger
	observer Observer
	catalog  *catalog
	legacy   *catalog // of clusters that emulate an old API server
	appliers *change.Managers
	openapi  *openAPI
	tables   *columns.Tables
	etcd     *etcd.Server
	http     *http.Server
	pipes    *pipes

	mu        sync.Mutex
	endpoints map[types.NamespacedName]*Endpoint
}

// New returns a Server without endpoints. Close releases its resources.
func New(o Options) *Server {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Observer == nil {
		o.Observer = ignore{}
	}
	catalog := newCatalog()
	s := &Server{
		clock:     o.Clock,
		logger:    o.Logger,
		observer:  o.Observer,
		catalog:   catalog,
		legacy:    legacyCatalog(),
		appliers:  change.NewManagers(),
		openapi:   newOpenAPI(catalog),
		tables:    columns.New(o.Clock),
		etcd:      etcd.NewServer(o.Observer.ObserveEtcd),
		pipes:     newPipes(),
		endpoints: map[types.NamespacedName]*Endpoint{},
	}
	s.http = &http.Server{
		Handler: s,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			NextProtos: protocols,
			GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				c, ok := hello.Conn.(*conn)
				if !ok {
					return nil, errors.New("connection without endpoint")
				}
				return c.endpoint.tlsConfig(c, hello.ServerName)
			},
		},
		ConnContext:       withConn,
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       3 * time.Minute,
		ErrorLog:          log.New(complaints{o.Logger}, "", 0),
	}
	go s.serve(s.pipes)
	return s
}

// Open opens an endpoint for a workload cluster at host and port; port 0 picks a free one. An existing endpoint of the
// cluster is returned. It is an error if that has another address, or if the port is in use.
func (s *Server) Open(g *cloud.Group, host string, port int) (*Endpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := net.JoinHostPort(host, strconv.Itoa(port))
	if e, found := s.endpoints[g.Key()]; found {
		if e.host != host || port != 0 && e.Port() != port || e.group != g {
			return nil, fmt.Errorf("open endpoint of %s at %s: already open at %s: close it first", g.Key(), wanted, e.address)
		}
		return e, nil
	}
	socket, err := net.Listen("tcp", wanted)
	if err != nil {
		return nil, fmt.Errorf("open endpoint of %s: %w", g.Key(), err)
	}
	e := newEndpoint(s, g, host, socket)
	s.endpoints[g.Key()] = e
	go s.serve(&listener{Listener: socket, endpoint: e})
	return e, nil
}

// Endpoint returns the endpoint of a workload cluster, or false if it is not open.
func (s *Server) Endpoint(key types.NamespacedName) (*Endpoint, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, found := s.endpoints[key]
	return e, found
}

// Addresses returns host:port of every open endpoint by cluster.
func (s *Server) Addresses() map[types.NamespacedName]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	addresses := make(map[types.NamespacedName]string, len(s.endpoints))
	for key, e := range s.endpoints {
		addresses[key] = e.address
	}
	return addresses
}

// Close closes all endpoints and aborts all requests.
func (s *Server) Close() error {
	s.mu.Lock()
	open := make([]*Endpoint, 0, len(s.endpoints))
	for _, e := range s.endpoints {
		open = append(open, e)
	}
	s.mu.Unlock()
	var errs []error
	for _, e := range open {
		errs = append(errs, e.Close())
	}
	errs = append(errs, s.pipes.Close())
	if err := s.http.Close(); !errors.Is(err, net.ErrClosed) { // Listeners have been closed before.
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (s *Server) remove(e *Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endpoints[e.group.Key()] == e {
		delete(s.endpoints, e.group.Key())
	}
}

// serve accepts connections until the listener is closed.
func (s *Server) serve(l net.Listener) {
	_ = s.http.Serve(tls.NewListener(l, s.http.TLSConfig)) // always the error of the closed listener
}
