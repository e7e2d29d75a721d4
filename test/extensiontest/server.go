// Package extensiontest serves runtime extensions in tests, on this host, with certificates of its own CA: well-behaved ones, and
// faulty ones.
package extensiontest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// Call is a call that a Server received.
type Call struct {
	// Path is the path of the URL, Query its query.
	Path, Query string
	// Header are the headers.
	Header http.Header
	// Body is the request.
	Body string
}

// Server serves extensions.
type Server struct {
	// URL is the base URL.
	URL string
	// CA is the certificate of the CA, as PEM.
	CA []byte

	mu          sync.Mutex
	calls       []Call
	connections int
}

// Options change a Server.
type Options struct {
	// Now is when the certificate is issued; it is valid for an hour. Zero: now.
	Now time.Time
	// Host is the name in the certificate. Empty: the server's own address.
	Host string
	// ClientCAs are the CAs, as PEM, one of which must have issued the certificate of clients. Empty: clients need none.
	ClientCAs []byte
}

// Serve serves a handler until the test ends.
func Serve(t testing.TB, o Options, handler http.HandlerFunc) *Server {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	ca, err := pki.NewCA(pki.ECDSA, o.Now)
	testenv.Must(t, err)
	request := pki.Request{CommonName: "extension", Validity: time.Hour, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if o.Host != "" {
		request.IPs, request.DNSNames = nil, []string{o.Host}
	}
	issued, err := ca.Issue(request, o.Now)
	testenv.Must(t, err)
	pair, err := tls.X509KeyPair(issued.Certificate, issued.Key)
	testenv.Must(t, err)
	trust, err := ca.PEM()
	testenv.Must(t, err)
	s := &Server{CA: trust.Certificate}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.calls = append(s.calls, Call{Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header, Body: string(body)})
		s.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.connections++
			s.mu.Unlock()
		}
	}
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if len(o.ClientCAs) > 0 {
		server.TLS.ClientAuth, server.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		server.TLS.ClientCAs.AppendCertsFromPEM(o.ClientCAs)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Calls returns the calls since the last call of Calls.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.calls
	s.calls = nil
	return out
}

// Connections returns the number of connections that were opened.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections
}

// Dial connects to the server, whatever the address is: for Services.
func (s *Server) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(s.URL, "https://"))
}

// Config returns how to reach the server.
func (s *Server) Config() runtimev1.ClientConfig {
	return runtimev1.ClientConfig{URL: s.URL, CABundle: s.CA}
}

// Answers returns a handler that answers with the JSON of the last segment of the path that has one, such as "discovery" or, for
// ".../beforeclustercreate/x", "beforeclustercreate/x". Other paths are not found.
func Answers(answers map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for suffix, answer := range answers {
			if strings.HasSuffix(r.URL.Path, "/"+suffix) {
				if err := json.NewEncoder(w).Encode(answer); err != nil {
					panic(err)
				}
				return
			}
		}
		http.NotFound(w, r)
	}
}

// Answer returns a handler that answers every request with a text.
func Answer(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

// Hang returns a handler that answers when the client has given up.
func Hang() http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
}

// Key returns a private key, as PEM.
func Key() ([]byte, error) {
	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	if err != nil {
		return nil, err
	}
	pair, err := ca.PEM()
	return pair.Key, err
}
