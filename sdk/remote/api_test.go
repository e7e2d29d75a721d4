package remote

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

// mode is how an API answers.
type mode string

const (
	serving  mode = "serving"
	hanging  mode = "hanging"  // accepts requests and never answers
	refusing mode = "refusing" // rejects all credentials
)

// api is a small API server of a workload cluster, behind TLS with client certificates. It has Nodes, which can be
// watched, and one ConfigMap.
type api struct {
	*httptest.Server
	ca *pki.CA

	mu       sync.Mutex
	mode     mode
	hostile  http.HandlerFunc // if not nil, answers instead
	nodes    []corev1.Node
	history  []metav1.WatchEvent // since firstRevision
	watches  map[chan metav1.WatchEvent]bool
	requests []string
	// authorized is what requests carried as authorization last.
	authorized string
	// changed is closed and replaced with every request and watch.
	changed chan struct{}
}

// firstRevision is that of an API which has not changed yet.
const firstRevision = 100

// newAPI starts an API server with a new CA that is closed when the test ends.
func newAPI(t *testing.T, m mode, nodes ...corev1.Node) *api {
	t.Helper()
	ca, err := pki.NewCA("", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return newAPIOf(t, ca, m, nodes...)
}

func newAPIOf(t *testing.T, ca *pki.CA, m mode, nodes ...corev1.Node) *api {
	t.Helper()
	pair, err := ca.Issue(pki.Request{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Validity: time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(ca.Certificate)
	a := &api{ca: ca, mode: m, nodes: nodes, watches: map[chan metav1.WatchEvent]bool{}, changed: make(chan struct{})}
	a.Server = httptest.NewUnstartedServer(a)
	a.EnableHTTP2 = true
	a.TLS = &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}
	a.StartTLS()
	t.Cleanup(a.close)
	return a
}

// close breaks all connections first: Close alone would wait for the watches over them.
func (a *api) close() {
	_ = a.Listener.Close()
	a.CloseClientConnections()
	a.Close()
}

// kubeconfig is an admin kubeconfig, another one with every call.
func (a *api) kubeconfig(t *testing.T) []byte {
	t.Helper()
	k, err := pki.NewKubeconfig("workload", a.URL, a.ca, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// turn changes how the API answers from now on, and ends all watches.
func (a *api) turn(m mode) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mode = m
	for w := range a.watches {
		close(w)
		delete(a.watches, w)
	}
}

// handle replaces the handler.
func (a *api) handle(h http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hostile = h
}

func (a *api) authorization() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.authorized
}

// expire ends all watches because their history is too old, as API servers do that have restarted, after a Node went that
// the client is not notified of.
func (a *api) expire(gone string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nodes = slices.DeleteFunc(a.nodes, func(n corev1.Node) bool { return n.Name == gone })
	e := metav1.WatchEvent{Type: "ERROR"}
	e.Object.Raw = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
	for w := range a.watches {
		w <- e
		close(w)
		delete(a.watches, w)
	}
}

// put changes or adds a Node.
func (a *api) put(node corev1.Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kind := "ADDED"
	for i := range a.nodes {
		if a.nodes[i].Name == node.Name {
			kind, a.nodes[i] = "MODIFIED", node
		}
	}
	if kind == "ADDED" {
		a.nodes = append(a.nodes, node)
	}
	a.history = append(a.history, event(kind, node))
	for w := range a.watches {
		w <- event(kind, node)
	}
}

// asked returns the requests so far that contain this.
func (a *api) asked(what string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []string
	for _, r := range a.requests {
		if strings.Contains(r, what) {
			found = append(found, r)
		}
	}
	return found
}

// awaitRequest waits for a request that contains this.
func (a *api) awaitRequest(t *testing.T, what string) {
	t.Helper()
	a.await(t, "a request for "+what, func() bool { return len(a.asked(what)) > 0 })
}

// awaitWatch waits for a watch.
func (a *api) awaitWatch(t *testing.T) {
	t.Helper()
	a.await(t, "a watch", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.watches) > 0
	})
}

func (a *api) await(t *testing.T, what string, came func() bool) {
	t.Helper()
	for deadline := time.After(patience); ; {
		a.mu.Lock()
		changed := a.changed
		a.mu.Unlock()
		if came() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%s did not arrive", what)
		}
	}
}

func (a *api) note(r *http.Request) mode {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r.Method+" "+r.URL.RequestURI())
	a.authorized = r.Header.Get("Authorization")
	a.tell()
	return a.mode
}

// tell notifies waiting goroutines. The caller must hold the lock.
func (a *api) tell() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch a.note(r) {
	case hanging:
		<-r.Context().Done()
		return
	case refusing:
		answer(w, http.StatusUnauthorized, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonUnauthorized, Message: "Unauthorized", Code: 401,
		})
		return
	}
	a.mu.Lock()
	hostile := a.hostile
	a.mu.Unlock()
	if hostile != nil {
		hostile(w, r)
		return
	}
	a.serve(w, r)
}

func (a *api) serve(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/api/v1/nodes" && r.URL.Query().Get("watch") != "":
		a.watch(w, r)
	case path == "/api/v1/nodes":
		a.mu.Lock()
		defer a.mu.Unlock()
		answer(w, http.StatusOK, corev1.NodeList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(firstRevision + len(a.history))}, Items: a.nodes,
		})
	case path == "/api/v1/nodes/live":
		answer(w, http.StatusOK, node("live", "fake://live", "1"))
	case path == "/api/v1/namespaces/kube-system/configmaps/kubeadm-config":
		answer(w, http.StatusOK, corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"},
		})
	default:
		answer(w, http.StatusNotFound, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404,
		})
	}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// watch streams events, from the revision of a list on, until the watcher leaves or the API ends the watch. What was there
// before are not sent, and there are no bookmarks.
func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan metav1.WatchEvent, 100)
	a.mu.Lock()
	revision, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if missed := revision - firstRevision; err == nil && missed >= 0 && missed < len(a.history) {
		for _, e := range a.history[missed:] {
			events <- e
		}
	}
	a.watches[events] = true
	a.tell()
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.watches, events)
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for {
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			_ = json.NewEncoder(w).Encode(e)
		}
	}
}

func event(kind string, n corev1.Node) metav1.WatchEvent {
	raw, err := json.Marshal(n)
	if err != nil {
		panic(err) // a Node can always be encoded
	}
	e := metav1.WatchEvent{Type: kind}
	e.Object.Raw = raw
	return e
}

func nodeType() metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: "Node"} }

func node(name, providerID, version string) corev1.Node {
	return corev1.Node{
		TypeMeta: nodeType(), ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version},
		Spec: corev1.NodeSpec{ProviderID: providerID},
	}
}
