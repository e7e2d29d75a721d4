package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/access"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
)

// ServeHTTP implements http.Handler for the connections of all endpoints.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := connOf(r.Context())
	e := c.endpoint
	if !e.Serves() {
		hangUp(c)
	}
	if machine, ok := strings.CutPrefix(r.TLS.ServerName, etcdPrefix); ok && e.member(r.TLS.ServerName) != nil {
		s.serveEtcd(w, r, e, machine)
		return
	}
	began := s.clock.Now()
	a := requestParser{catalog: s.catalog}
	var rejected error
	if isLegacy(e.group) {
		a.catalog, a.legacy = s.legacy, true
		w, r, rejected = s.serveLegacy(w, r)
	}
	a.request = a.catalog.parse(r)
	recorded := &recorder{ResponseWriter: w, answer: func(code int) {
		s.observer.ObserveRequest(observation(e, r, a.request, code, s.clock.Since(began)))
	}}
	err := rejected
	if err == nil {
		err = s.serveSafely(recorded, r, e, a)
	}
	if err != nil && recorded.code == 0 {
		writeError(recorded, err)
	}
}

// serveSafely turns a panic into an error. The HTTP server would close the connection, with all other requests in flight.
func (s *Server) serveSafely(w http.ResponseWriter, r *http.Request, e *Endpoint, a requestParser) (err error) {
	defer func() {
		problem := recover()
		if problem == http.ErrAbortHandler { //nolint:errorlint // http.Server compares by value.
			panic(problem)
		}
		if problem != nil {
			s.logger.Error(fmt.Errorf("panic: %v", problem), "Simulated API server failed", "method", r.Method, "path", r.URL.Path, "stack",
				string(debug.Stack()))
			err = apierrors.NewInternalError(errors.New("the simulated API server panicked"))
		}
	}()
	return s.serveAPI(w, r, e, a)
}

// requestParser parses the request. It is nil if it is not for a resource.
type requestParser struct {
	*request
	catalog *catalog
	legacy  bool
}

// hangUp closes the connection, as if the machine at the other end were gone.
func hangUp(c *conn) {
	_ = c.Close()
	panic(http.ErrAbortHandler)
}

func (s *Server) serveEtcd(w http.ResponseWriter, r *http.Request, e *Endpoint, machine string) {
	if e.group.Dead(machine) {
		hangUp(connOf(r.Context()))
	}
	if r.ProtoMajor != 2 || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		http.Error(w, "This is an etcd endpoint, which only serves gRPC", http.StatusUnsupportedMediaType)
		return
	}
	s.etcd.Serve(w, r, e.group, machine)
}

// serveAPI handles an API request, or returns the error to respond with.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request, e *Endpoint, asked requestParser) error {
	if err := e.group.InjectFaults(r.Context()); err != nil {
		return failure(err)
	}
	if served, err := s.servePublic(w, r, e); served || err != nil {
		return err
	}
	who := authenticate(r)
	if who == nil {
		return apierrors.NewUnauthorized("Unauthorized")
	}
	who, err := access.Impersonate(e.group.Store, who, r.Header)
	if err != nil {
		return err
	}
	if asked.catalog.discovery.serve(w, r) || s.openapi.serve(w, r) {
		return nil
	}
	if asked.request == nil {
		return notServed(r)
	}
	if err := checkQuorum(e.group); err != nil {
		return err
	}
	if a := asked.attributes(); !access.Authorize(e.group.Store, who, a) {
		return access.Forbidden(who, a)
	}
	accept, err := negotiate(r.Header.Get("Accept"))
	if err != nil {
		return err
	}
	c := &call{request: asked.request, server: s, endpoint: e, group: e.group, user: who, w: w, r: r, accept: accept, legacy: asked.legacy}
	return c.serve()
}

// checkQuorum fails like an API server whose etcd has lost quorum.
func checkQuorum(g *cloud.Group) error {
	serves, err := etcd.Serves(g)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if !serves {
		return apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	}
	return nil
}

// servePublic handles unauthenticated requests, and reports whether this was one. What does not depend on etcd is served
// without quorum.
func (s *Server) servePublic(w http.ResponseWriter, r *http.Request, e *Endpoint) (bool, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false, nil
	}
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case path == "/healthz" || path == "/livez" || path == "/readyz" ||
		strings.HasPrefix(path, "/healthz/") || strings.HasPrefix(path, "/livez/") || strings.HasPrefix(path, "/readyz/"):
		if err := checkQuorum(e.group); err != nil {
			return false, err
		}
		writeBytes(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok"))
	case path == "/version":
		writeBytes(w, http.StatusOK, "application/json", mustEncode(versionInfo(e.Version())))
	case path == "":
		writeBytes(w, http.StatusOK, "application/json",
			[]byte(`{"paths":["/api","/api/v1","/apis","/healthz","/livez","/openapi/v3","/readyz","/version"]}`))
	default:
		return false, nil
	}
	return true, nil
}

// serve handles an authorized request.
func (c *call) serve() error {
	if c.resource.review {
		return c.serveReview()
	}
	if c.subresource != "" {
		return c.serveSubresource()
	}
	switch {
	case c.verb == "list":
		return c.list()
	case c.verb == "watch":
		return c.watch()
	case c.verb == "get":
		return c.get()
	case c.verb == "create" && c.name == "":
		return c.create()
	case c.verb == "deletecollection":
		return c.deleteCollection()
	case c.verb == "delete":
		return c.delete()
	case c.verb == "update" && c.name != "":
		return c.update()
	case c.verb == "patch" && c.name != "":
		return c.patch()
	}
	return apierrors.NewMethodNotSupported(c.resource.groupResource(), c.verb)
}

func (c *call) serveSubresource() error {
	if !c.resource.hasSubresource(c.subresource) {
		return notServed(c.r)
	}
	switch {
	case c.subresource == "status" && slices.Contains(statusVerbs, c.verb):
		switch c.verb {
		case "get":
			return c.get()
		case "update":
			return c.update()
		}
		return c.patch()
	case c.subresource == "scale" && slices.Contains(statusVerbs, c.verb):
		return c.scale()
	case c.subresource == "eviction" && c.verb == "create":
		return c.evict()
	case c.subresource == "log" && c.verb == "get", c.subresource == "exec" || c.subresource == "attach":
		return c.notSimulated()
	case c.subresource == "portforward" && (c.verb == "create" || c.verb == "get"):
		return c.portForward()
	}
	return apierrors.NewMethodNotSupported(c.resource.groupResource(), c.verb)
}

// versionInfo describes a Kubernetes version such as v1.31.2.
func versionInfo(gitVersion string) version.Info {
	info := version.Info{GitVersion: gitVersion, GitTreeState: "clean", Compiler: "gc", Platform: "linux/amd64", GoVersion: "go1.26"}
	parts := strings.SplitN(strings.TrimPrefix(gitVersion, "v"), ".", 3)
	if len(parts) == 3 {
		info.Major, info.Minor = parts[0], parts[1]
	}
	return info
}
