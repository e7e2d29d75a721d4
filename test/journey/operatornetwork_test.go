package journey

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// fakeNetwork is an HTTPS proxy on the loopback interface, and all servers behind it: every request of a program ends there. A host
// that does not exist refuses connections.
type fakeNetwork struct {
	env []string

	mu sync.Mutex
	// hosts respond, by name.
	hosts map[string]http.HandlerFunc
	// requests are the URLs that were requested, with those of connections that were refused.
	requests []string
}

// newFakeNetwork returns a network without hosts.
func newFakeNetwork(t *testing.T) *fakeNetwork {
	t.Helper()
	n := &fakeNetwork{hosts: map[string]http.HandlerFunc{}}
	certificate, ca := serving(t)
	servers := httptest.NewUnstartedServer(http.HandlerFunc(n.serve))
	servers.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	servers.StartTLS()
	target := servers.Listener.Addr().String()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.connect(w, r, target) }))
	t.Cleanup(func() {
		proxy.Close()
		servers.CloseClientConnections()
		servers.Close()
	})
	n.env = []string{"HTTPS_PROXY=" + proxy.URL, "NO_PROXY=127.0.0.1,localhost,.svc", "SSL_CERT_FILE=" + ca, "SSL_CERT_DIR=" + t.TempDir()}
	return n
}

// Hosts of the fakeNetwork.
const (
	githubAPI  = "api.github.com"
	gitlabHost = "gitlab.example.com"
	noHost     = "gitlab.unreachable.example.com"
)

// serving returns a certificate for all hosts, and the file of its authority.
func serving(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	testenv.Must(t, err)
	pair, err := ca.Issue(pki.Request{CommonName: "internet", DNSNames: []string{githubAPI, gitlabHost}, Validity: time.Hour}, time.Now())
	testenv.Must(t, err)
	authority, err := ca.PEM()
	testenv.Must(t, err)
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	testenv.Must(t, err)
	file := filepath.Join(t.TempDir(), "ca.pem")
	testenv.Must(t, os.WriteFile(file, authority.Certificate, 0o600))
	return certificate, file
}

// set makes a host exist.
func (n *fakeNetwork) set(host string, respond http.HandlerFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host] = respond
}

// requested returns how many requests had a part of a URL.
func (n *fakeNetwork) requested(part string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, url := range n.requests {
		if strings.Contains(url, part) {
			count++
		}
	}
	return count
}

func (n *fakeNetwork) host(name string) http.HandlerFunc {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[name]
}

func (n *fakeNetwork) record(url string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requests = append(n.requests, url)
}

func (n *fakeNetwork) serve(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	n.record("https://" + host + r.URL.Path)
	if respond := n.host(host); respond != nil {
		respond(w, r)
		return
	}
	panic(http.ErrAbortHandler) // The connection is from when the host existed.
}

// connect makes a tunnel to the server of all hosts.
func (n *fakeNetwork) connect(w http.ResponseWriter, r *http.Request, target string) {
	host, _, _ := strings.Cut(r.Host, ":")
	if r.Method != http.MethodConnect || n.host(host) == nil {
		n.record("https://" + host)
		http.Error(w, "no such host", http.StatusBadGateway)
		return
	}
	out, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	in, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		out.Close()
		return
	}
	fmt.Fprint(in, "HTTP/1.1 200 Connection established\r\n\r\n")
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // It ends with either of both connections.
		to.Close()
		from.Close()
	}
	go pipe(out, in)
	go pipe(in, out)
}

// releases are the files of releases, by version and name, as one repository of GitHub's API.
type releases map[string]map[string]string

// serveGitHub responds like GitHub's API for repositories, named {owner}/{repository}.
func serveGitHub(repositories map[string]releases) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/repos/"), "/", 3)
		if len(parts) < 3 {
			http.NotFound(w, r)
			return
		}
		all := repositories[parts[0]+"/"+parts[1]]
		var list []map[string]any
		for version, files := range all {
			release, assets := map[string]any{"tag_name": version}, []map[string]any{}
			for name, content := range files {
				id := assetID(version, name)
				assets = append(assets, map[string]any{"id": id, "name": name})
				if parts[2] == fmt.Sprint("releases/assets/", id) {
					fmt.Fprint(w, content)
					return
				}
			}
			release["assets"] = assets
			list = append(list, release)
			if parts[2] == "releases/tags/"+version {
				_ = json.NewEncoder(w).Encode(release) // A client that is gone notices itself.
				return
			}
		}
		if parts[2] != "releases" || len(list) == 0 {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(list)
	}
}

func assetID(version, name string) uint32 {
	h := fnv.New32()
	fmt.Fprint(h, version, "/", name)
	return h.Sum32()
}
