package journey

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/pki"
)

// A provider of somebody else may simulate machines too, with API servers that do no more than Cluster API v1.7 needs:
// its own in-memory provider's. A user's CA and kubeconfig put such a one in front of a real workload cluster.
func TestPlainAPIServers(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.Class(w.Tools.ProjectTemplate())
	cluster := w.Generated(w.Tools.ProjectTemplate(), "plain", older, 1, 1)
	plain := servePlain(t, w, client.ObjectKeyFromObject(cluster))
	c := w.Subject(cluster)
	c.Eventually("it comes up", Ready, ControlPlanes(1), Workers(1), Version(older))
	c.Change(setControlPlanes(3))
	c.Eventually("the control plane grows", Ready, ControlPlanes(3), Workers(1))
	before := c.Picture()
	c.Change(setVersion(newer))
	c.Eventually("it is upgraded", Ready, ControlPlanes(3), Workers(1), Version(newer),
		NewMachines((*Picture).ControlPlane, before), NewMachines((*Picture).Workers, before))
	c.Change(setControlPlanes(1))
	c.Eventually("the control plane shrinks", Ready, ControlPlanes(1), Workers(1))
	if plain.forwarded.Load() == 0 {
		t.Error("nobody asked for a connection to etcd, so all this went another way")
	}
	c.Delete()
}

// plainAPI stands in front of a workload cluster's API server, and knows less than it.
type plainAPI struct {
	w       *World
	cluster client.ObjectKey
	ca      *pki.CA
	proxy   *httputil.ReverseProxy

	forwarded atomic.Int64 // connections to Pods
}

// servePlain answers at the address in the Cluster's kubeconfig.
func servePlain(t *testing.T, w *World, cluster client.ObjectKey) *plainAPI {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ca, err := pki.NewCA("", time.Now())
	must(err)
	p := &plainAPI{w: w, cluster: cluster, ca: ca}
	pair := func(r pki.Request) tls.Certificate {
		r.Validity = time.Hour
		issued, err := ca.Issue(r, time.Now())
		must(err)
		certificate, err := tls.X509KeyPair(issued.Certificate, issued.Key)
		must(err)
		return certificate
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Certificate)
	p.proxy = &httputil.ReverseProxy{
		Rewrite: p.ask, ModifyResponse: p.reply, FlushInterval: -1,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: roots,
			Certificates: []tls.Certificate{pair(pki.Request{CommonName: "kubernetes-admin", Organizations: []string{"system:masters"}})},
		}},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewUnstartedServer(p)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair(pki.Request{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})}}
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections() // Watches would keep it open.
		server.Close()
	})
	keys, err := ca.PEM()
	must(err)
	kubeconfig, err := pki.NewKubeconfig(cluster.Name, server.URL, ca, time.Now())
	must(err)
	w.Applied(
		pki.NewSecret(cluster, pki.ClusterCA, keys.Data(), nil),
		pki.NewSecret(cluster, pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: kubeconfig}, nil),
	)
	return p
}

// absent is what there is not: everything but the kinds that v1.7 reads and writes.
var absent = regexp.MustCompile(`^/version|^/openapi|^/(live|ready|health)z|^/apis/(policy|authorization|authentication|storage)|/(status|scale|eviction)$`)

// ServeHTTP implements http.Handler.
func (p *plainAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case absent.MatchString(r.URL.Path):
		http.NotFound(w, r)
	case strings.HasSuffix(r.URL.Path, "/portforward"):
		if r.Header.Get("Upgrade") == "websocket" {
			http.Error(w, "unable to upgrade: missing upgrade headers in request", http.StatusBadRequest)
			return
		}
		p.forwarded.Add(1)
		p.proxy.ServeHTTP(w, r)
	case r.Header.Get("Content-Type") == "application/apply-patch+yaml":
		w.WriteHeader(http.StatusUnsupportedMediaType)
	default:
		p.proxy.ServeHTTP(w, r)
	}
}

// ask sends a request on without what such an API server ignores.
func (p *plainAPI) ask(r *httputil.ProxyRequest) {
	cluster := &clusterv1.Cluster{}
	if err := p.w.Client.Get(r.In.Context(), p.cluster, cluster); err == nil && cluster.Spec.ControlPlaneEndpoint.IsValid() {
		r.SetURL(&url.URL{Scheme: "https", Host: cluster.Spec.ControlPlaneEndpoint.String()})
	}
	query := r.Out.URL.Query()
	for _, ignored := range []string{"sendInitialEvents", "allowWatchBookmarks", "resourceVersion", "resourceVersionMatch", "limit"} {
		query.Del(ignored)
	}
	r.Out.URL.RawQuery = query.Encode()
	if r.In.Header.Get("Upgrade") != "" {
		return
	}
	r.Out.Header.Set("Accept", "application/json")
	r.Out.Header.Del("Accept-Encoding")
	if body, err := io.ReadAll(r.In.Body); err == nil && !strings.Contains(r.In.Header.Get("Content-Type"), "protobuf") {
		body = bytes.ReplaceAll(body, []byte(`"resourceVersion":"v`), []byte(`"resourceVersion":"`))
		r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	} else {
		r.Out.Body = io.NopCloser(bytes.NewReader(body))
	}
}

var numbered = regexp.MustCompile(`"resourceVersion":"(\d+)"`)

// reply makes resource versions what nobody can take for numbers.
func (p *plainAPI) reply(r *http.Response) error {
	if r.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	from, lines, to := r.Body, bufio.NewReader(r.Body), (*io.PipeWriter)(nil)
	r.Body, to = io.Pipe()
	r.ContentLength = -1
	r.Header.Del("Content-Length")
	go func() {
		defer func() { _ = from.Close() }()
		for {
			line, err := lines.ReadBytes('\n')
			if _, failed := to.Write(numbered.ReplaceAll(line, []byte(`"resourceVersion":"v$1"`))); failed != nil {
				return
			}
			if err != nil {
				_ = to.CloseWithError(err)
				return
			}
		}
	}()
	return nil
}
