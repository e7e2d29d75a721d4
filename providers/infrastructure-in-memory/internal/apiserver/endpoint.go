package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
)

// maxConnections is the maximum number of connections per cluster. All clusters share the memory of the process.
const maxConnections = 1000

// Credentials are the certificates of a cluster's API server and etcd, and the CAs that they trust.
type Credentials struct {
	// Serving is the API server's serving certificate, with its key.
	Serving tls.Certificate
	// Authority is the cluster's CA, which issued Serving.
	Authority *x509.Certificate
	// ClientCAs issue the certificates of the API server's clients.
	ClientCAs *x509.CertPool
	// EtcdClientCAs issue the certificates of etcd's clients.
	EtcdClientCAs *x509.CertPool
	// Source identifies the CAs: their certificates in PEM.
	Source string
}

// Endpoint is the endpoint of a workload cluster. It serves when it has credentials and at least one server on a living
// machine, or a hosted one; otherwise it closes incoming connections. It is safe for concurrent use.
type Endpoint struct {
	group   *cloud.Group
	server  *Server
	host    string // as given to Open
	address string
	socket  net.Listener

	mu       sync.RWMutex
	closed   bool
	hosted   string                      // the version of an API server that runs on no machine; empty: none
	servers  map[string]string           // the version of each machine's API server
	members  map[string]*tls.Certificate // by machine with an etcd member
	identity *identity
	// own are the credentials of machines that were bootstrapped with other CAs than those of identity.
	own map[string]*identity
	// turn counts connections, which API servers get in turn.
	turn  int
	conns map[*conn]struct{}
	// large limits concurrent large responses.
	large chan struct{}
}

// identity is a cluster's credentials in the form required by connections.
type identity struct {
	authority *x509.Certificate
	source    string
	clients   *x509.CertPool
	api       *tls.Config
	etcd      *tls.Config
	// machine is the one that they belong to. Empty: they are those of the cluster.
	machine string
}

func newEndpoint(s *Server, g *cloud.Group, host string, socket net.Listener) *Endpoint {
	return &Endpoint{
		group:   g,
		server:  s,
		host:    host,
		address: socket.Addr().String(),
		socket:  socket,
		servers: map[string]string{},
		members: map[string]*tls.Certificate{},
		own:     map[string]*identity{},
		conns:   map[*conn]struct{}{},
		large:   make(chan struct{}, maxLarge),
	}
}

// Group returns the resource group that the endpoint serves.
func (e *Endpoint) Group() *cloud.Group { return e.group }

// Address returns host:port of the endpoint.
func (e *Endpoint) Address() string { return e.address }

// Port returns the port of the endpoint.
func (e *Endpoint) Port() int {
	if tcp, ok := e.socket.Addr().(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}

// Version returns the Kubernetes version that the cluster reports, such as v1.31.2. Requests are not balanced: the API
// server on the oldest living machine handles all of them. During an upgrade that is an old one until the last old one is
// gone. A hosted control plane takes precedence.
func (e *Endpoint) Version() string {
	e.mu.RLock()
	servers, version := maps.Clone(e.servers), e.hosted
	e.mu.RUnlock()
	if version != "" {
		return version
	}
	var since time.Time
	for _, machine := range slices.Sorted(maps.Keys(servers)) {
		m, err := e.group.Machine(machine)
		if err != nil || m.State == machines.Dead || !since.IsZero() && !m.Created.Before(since) {
			continue
		}
		version, since = servers[machine], m.Created
	}
	return version
}

// SetCredentials replaces the cluster's credentials. They are used for new connections; clients of existing connections
// are authenticated again.
func (e *Endpoint) SetCredentials(c Credentials) {
	next := e.newIdentity(c)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.identity = next
}

// SetServerCredentials sets credentials that differ from those of the cluster: those of the API server and the etcd member of one machine,
// while CAs are rotated. New connections to the cluster get its API servers in turn.
func (e *Endpoint) SetServerCredentials(machine string, c Credentials) {
	next := e.newIdentity(c)
	next.machine = machine
	e.mu.Lock()
	defer e.mu.Unlock()
	e.own[machine] = next
}

// HasSource reports whether the API server of a machine has credentials of these CAs, or the cluster has.
func (e *Endpoint) HasSource(machine, source string) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if own := e.own[machine]; own != nil {
		return own.source == source
	}
	return e.identity != nil && e.identity.source == source
}

func (e *Endpoint) newIdentity(c Credentials) *identity {
	serving := c.Serving
	next := &identity{authority: c.Authority, clients: c.ClientCAs, source: c.Source}
	next.api = &tls.Config{
		MinVersion:             tls.VersionTLS12,
		NextProtos:             protocols,
		Certificates:           []tls.Certificate{serving},
		SessionTicketsDisabled: true,
		// An invalid certificate results in 401 instead of a failed handshake.
		ClientAuth: tls.RequestClientCert,
	}
	next.etcd = &tls.Config{
		MinVersion:             tls.VersionTLS12,
		NextProtos:             protocols,
		SessionTicketsDisabled: true,
		ClientAuth:             tls.RequireAndVerifyClientCert,
		ClientCAs:              c.EtcdClientCAs,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if certificate := e.member(hello.ServerName); certificate != nil {
				return certificate, nil
			}
			return nil, errors.New("no such etcd member")
		},
	}
	return next
}

// Host starts or upgrades an API server of this version that does not run on a machine, for a hosted control plane. An empty
// version stops it.
func (e *Endpoint) Host(version string) {
	e.mu.Lock()
	last := e.hosted != "" && version == "" && len(e.servers) == 0
	e.hosted = version
	e.mu.Unlock()
	if last {
		e.disconnect(all)
	}
}

// StartServer adds an API server of this version on a machine. It is idempotent.
func (e *Endpoint) StartServer(machine, version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.servers[machine] = version
}

// HasServer reports whether an API server runs on a machine, see StartServer.
func (e *Endpoint) HasServer(machine string) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	_, runs := e.servers[machine]
	return runs
}

// StopServer removes the API server of a machine. Without API servers, open connections are closed; those to a server with credentials of
// its own always.
func (e *Endpoint) StopServer(machine string) {
	e.mu.Lock()
	delete(e.servers, machine)
	own := e.own[machine]
	delete(e.own, machine)
	last := len(e.servers) == 0 && e.hosted == ""
	e.mu.Unlock()
	if last || own != nil {
		e.disconnect(func(c *conn) bool { return last || c.server.Load() == own })
	}
}

// StartEtcd adds an etcd member with this serving certificate on a machine.
func (e *Endpoint) StartEtcd(machine string, serving tls.Certificate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.members[machine] = &serving
}

// HasCredentials reports whether SetCredentials was called. Callers check it before they generate keys, which is
// expensive.
func (e *Endpoint) HasCredentials() bool { return e.trusted() != nil }

// Authority returns the CA of the API server's certificate, nil without credentials.
func (e *Endpoint) Authority() *x509.Certificate {
	if trusted := e.trusted(); trusted != nil {
		return trusted.authority
	}
	return nil
}

// HasEtcd reports whether an etcd member runs on a machine, see StartEtcd.
func (e *Endpoint) HasEtcd(machine string) bool { return e.member(etcdPrefix+machine) != nil }

// StopEtcd removes the etcd member of a machine.
func (e *Endpoint) StopEtcd(machine string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.members, machine)
}

// Serves reports whether there are credentials, and a server on a living machine or a hosted one.
func (e *Endpoint) Serves() bool {
	dead := e.group.Faults().DeadMachines
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed || e.identity == nil {
		return false
	}
	if e.hosted != "" {
		return true
	}
	alive := len(e.servers)
	for _, machine := range dead {
		if _, found := e.servers[machine]; found {
			alive--
		}
	}
	return alive > 0
}

// Close stops listening, closes all connections and releases the port. It is idempotent.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.mu.Unlock()

	e.server.remove(e)
	e.server.observer.ForgetCluster(e)
	err := e.socket.Close()
	e.disconnect(all)
	if err != nil {
		return fmt.Errorf("close endpoint of %s: %w", e.group.Key(), err)
	}
	return nil
}

// admit adds an accepted connection to the endpoint, or closes it if the endpoint does not serve.
func (e *Endpoint) admit(accepted net.Conn) *conn {
	if !e.Serves() {
		_ = accepted.Close() // nothing to do about an error
		return nil
	}
	c := &conn{Conn: accepted, endpoint: e}
	e.mu.Lock()
	full := len(e.conns) >= maxConnections
	if !full {
		e.conns[c] = struct{}{}
	}
	e.mu.Unlock()
	// The last server may have stopped since, and disconnect missed this connection.
	if full || !e.Serves() {
		_ = c.Close() // as above
		return nil
	}
	return c
}

func (e *Endpoint) forget(c *conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.conns, c)
}

// all chooses all connections.
func all(*conn) bool { return true }

// disconnect closes the connections that are chosen.
func (e *Endpoint) disconnect(chosen func(*conn) bool) {
	e.mu.RLock()
	open := make([]*conn, 0, len(e.conns))
	for c := range e.conns {
		if chosen(c) {
			open = append(open, c)
		}
	}
	e.mu.RUnlock()
	for _, c := range open {
		_ = c.Close() // nothing to do about an error
	}
}

// tlsConfig returns the TLS configuration for a connection: that of an etcd member, by server name, or of an API server.
func (e *Endpoint) tlsConfig(c *conn, serverName string) (*tls.Config, error) {
	isMember := e.member(serverName) != nil
	dead := e.group.Faults().DeadMachines
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.identity == nil {
		return nil, fmt.Errorf("cluster %s has no credentials yet", e.group.Key())
	}
	machine := strings.TrimPrefix(serverName, etcdPrefix)
	if !isMember {
		machine = e.nextServer(dead)
	}
	chosen := e.identity
	if own := e.own[machine]; own != nil {
		chosen = own
	}
	c.server.Store(chosen)
	if isMember {
		return chosen.etcd, nil
	}
	return chosen.api, nil
}

// nextServer returns the machine whose API server gets the next connection. The caller holds the lock.
func (e *Endpoint) nextServer(dead []string) string {
	if len(e.own) == 0 {
		return "" // All are the same.
	}
	alive := slices.DeleteFunc(slices.Sorted(maps.Keys(e.servers)), func(machine string) bool { return slices.Contains(dead, machine) })
	if len(alive) == 0 {
		return ""
	}
	e.turn++
	return alive[e.turn%len(alive)]
}

// member returns the serving certificate of the etcd member with a server name, or nil.
func (e *Endpoint) member(serverName string) *tls.Certificate {
	machine, ok := strings.CutPrefix(serverName, etcdPrefix)
	if !ok {
		return nil
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.members[machine]
}

func (e *Endpoint) trusted() *identity {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.identity
}

// trusts returns the credentials of the API server behind a connection: those of its machine, or the cluster's current ones. It is nil if
// that server has stopped: another one, which may trust other CAs, must not respond instead.
func (e *Endpoint) trusts(c *conn) *identity {
	server := c.server.Load()
	e.mu.RLock()
	defer e.mu.RUnlock()
	if server == nil || server.machine == "" {
		return e.identity
	}
	return e.own[server.machine]
}
