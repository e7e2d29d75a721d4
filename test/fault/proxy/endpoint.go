package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// readHeaderTimeout limits how long a manager may take to send request headers.
const readHeaderTimeout = 30 * time.Second

// endpoint is one address of the Proxy and the API server behind it.
type endpoint struct {
	proxy *Proxy
	// workload is the workload cluster, and namespace that of its Cluster; both are empty for the
	// management cluster.
	workload, namespace string

	upstream  *url.URL
	transport http.RoundTripper
	upgrades  *httputil.ReverseProxy
	listener  net.Listener
	server    *http.Server

	mu    sync.Mutex
	lists map[list]string  // the lists that caches of the manager consist of, with the Accept header of their requests
	stale map[list]*answer // saved lists
}

func (p *Proxy) open(upstream *rest.Config, authority *pki.CA, namespace, workload string) (*endpoint, error) {
	e := &endpoint{proxy: p, workload: workload, namespace: namespace, lists: map[list]string{}, stale: map[list]*answer{}}
	if err := e.dial(upstream); err != nil {
		return nil, err
	}
	pair, err := authority.Issue(pki.Request{
		CommonName: "fault", DNSNames: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Validity: 24 * time.Hour,
	}, time.Now())
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, err
	}
	if e.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	e.server = &http.Server{
		Handler: e, ReadHeaderTimeout: readHeaderTimeout, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}
	go func() { _ = e.server.ServeTLS(e.listener, "", "") }() // The error is always that of the closed listener.
	return e, nil
}

// dial prepares connections to the API server. Upgraded connections need HTTP/1.1.
func (e *endpoint) dial(upstream *rest.Config) error {
	var err error
	if e.upstream, _, err = rest.DefaultServerUrlFor(upstream); err != nil {
		return err
	}
	upstream = rest.CopyConfig(upstream)
	upstream.DisableCompression = true
	if e.transport, err = rest.TransportFor(upstream); err != nil {
		return err
	}
	secured, err := rest.TLSConfigFor(upstream)
	if err != nil {
		return err
	}
	secured.NextProtos = []string{"http/1.1"}
	e.upgrades = &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: secured},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(e.upstream)
			r.Out.Host = e.upstream.Host
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	return nil
}

func (e *endpoint) url() string { return "https://" + e.listener.Addr().String() }

func (e *endpoint) close() error { return e.server.Close() }

// ServeHTTP forwards a request, or injects a fault if one is due.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, h *http.Request) {
	if e.proxy.isDead() {
		panic(http.ErrAbortHandler)
	}
	r, isResource := script.ParseRequest(h)
	r.Manager, r.Workload, r.Run = e.proxy.options.Manager, e.workload, r.Namespace
	if e.workload != "" {
		r.Run = e.namespace
	}
	if e.workload == "" && (r.Lease() || e.proxy.options.Whole && r.Namespace == "") {
		r.Run = e.proxy.options.Scripts.Run() // Leases are in the managers' namespaces. They count for the active run.
	}
	if isResource && e.blocked(w, h, r) {
		return
	}
	s := e.proxy.options.Scripts.Find(r.Run)
	if !isResource || s == nil {
		e.pass(w, h, r)
		return
	}
	record, fault := s.Next(r)
	if fault == nil {
		s.Answered(record, e.pass(w, h, r))
		return
	}
	e.inject(w, h, r, fault, func(code int) { s.Answered(record, code) })
}

// pass forwards a request and its response, and returns the status.
func (e *endpoint) pass(w http.ResponseWriter, h *http.Request, r script.Request) int {
	switch {
	case r.Verb == "connect":
		return e.upgrade(w, h, r)
	case r.Verb == "list":
		if saved := e.staleList(h, r); saved != nil {
			saved.write(w)
			return saved.code
		}
	case r.Verb == "watch":
		return e.watch(w, h, r)
	}
	a, err := e.forward(h, r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if e.proxy.isDead() {
		panic(http.ErrAbortHandler)
	}
	a.write(w)
	return a.code
}

// upgrade forwards an upgraded connection until it ends or a partition begins.
func (e *endpoint) upgrade(w http.ResponseWriter, h *http.Request, r script.Request) int {
	ctx, cancel := context.WithCancel(h.Context())
	defer cancel()
	ongoing := e.proxy.options.Scripts.Ongoing()
	go func() {
		for ctx.Err() == nil {
			changed := ongoing.Changed()
			if how, _ := ongoing.Blocked(r.Kind(), e.namespace); how != "" {
				cancel()
			}
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
	}()
	e.upgrades.ServeHTTP(w, h.WithContext(ctx))
	return http.StatusSwitchingProtocols
}

// answer is a complete response of an API server.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

func (a *answer) write(w http.ResponseWriter) {
	copyHeader(w.Header(), a.header)
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body) // The manager may have exited.
}

// forward forwards a request and reads the whole response. A write is not canceled when its sender exits.
func (e *endpoint) forward(h *http.Request, r script.Request) (*answer, error) {
	ctx := h.Context()
	if r.Write() {
		ctx = context.WithoutCancel(ctx)
	}
	response, err := e.send(ctx, h)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	a := &answer{code: response.StatusCode, header: response.Header}
	if a.body, err = io.ReadAll(response.Body); err != nil {
		return nil, err
	}
	if r.Resource == "secrets" && e.workload == "" {
		if a.body, err = e.proxy.redirect(ctx, a.body); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (e *endpoint) send(ctx context.Context, h *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(h.Body)
	if err != nil {
		return nil, err
	}
	target := *e.upstream
	target.Path, target.RawQuery = strings.TrimSuffix(target.Path, "/")+h.URL.Path, h.URL.RawQuery
	out, err := http.NewRequestWithContext(ctx, h.Method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("forwarding %s %s: %w", h.Method, h.URL.Path, err)
	}
	copyHeader(out.Header, h.Header)
	out.Header.Del("Authorization")
	out.Header.Del("Accept-Encoding")
	out.Header.Set("Accept", asJSON(h.Header.Get("Accept")))
	return e.transport.RoundTrip(out)
}

// asJSON replaces the media types of an Accept header by JSON.
func asJSON(accept string) string {
	var kept []string
	for one := range strings.SplitSeq(accept, ",") {
		_, parameters, has := strings.Cut(strings.TrimSpace(one), ";")
		media := "application/json"
		if has {
			media += ";" + parameters
		}
		kept = append(kept, media)
	}
	return strings.Join(kept, ", ")
}

func copyHeader(to, from http.Header) {
	for name, values := range from {
		if name == "Content-Length" || name == "Connection" || name == "Transfer-Encoding" {
			continue
		}
		to[name] = values
	}
}
