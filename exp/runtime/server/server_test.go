package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
)

const prefix = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"

func beforeCreate(_ context.Context, request *runtimehooksv1.BeforeClusterCreateRequest, response *runtimehooksv1.BeforeClusterCreateResponse) {
	switch request.Settings["mode"] {
	case "panic":
		response.RetryAfterSeconds = 3
		panic("secret of the process")
	case "replace":
		*response = runtimehooksv1.BeforeClusterCreateResponse{}
	case "block":
		response.SetRetryAfterSeconds(7)
	}
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	response.SetMessage("asked about " + request.Cluster.Name)
}

// TestServes calls extensions as the managers do, over TLS.
func TestServes(t *testing.T) {
	s, client, url := start(t, server.ExtensionHandler{
		Hook: runtimehooksv1.BeforeClusterCreate, Name: "create", HandlerFunc: beforeCreate,
		TimeoutSeconds: ptr.To[int32](5), FailurePolicy: ptr.To(runtimehooksv1.FailurePolicyIgnore),
	}, server.ExtensionHandler{
		Hook: runtimehooksv1.AfterClusterUpgrade, Name: "silent",
		HandlerFunc: func(context.Context, *runtimehooksv1.AfterClusterUpgradeRequest, *runtimehooksv1.AfterClusterUpgradeResponse) {
		},
	})
	if err := s.Healthy(nil); err != nil {
		t.Errorf("healthy while serving: %v", err)
	}
	request := func(mode string) string {
		return `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest","settings":{"mode":"` + mode +
			`"},"cluster":{"metadata":{"name":"c1"}}}`
	}
	created := func(rest string) string {
		return `{"kind":"BeforeClusterCreateResponse","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1",` + rest + `}`
	}
	for reason, test := range map[string]struct {
		path, body string
		want       string
	}{
		"discovery lists what was registered": {
			path: "discovery?timeout=10s", body: `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"DiscoveryRequest"}`,
			want: `{"kind":"DiscoveryResponse","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","status":"Success","message":"","handlers":[` +
				`{"name":"create","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"BeforeClusterCreate"},"timeoutSeconds":5,"failurePolicy":"Ignore"},` +
				`{"name":"silent","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"AfterClusterUpgrade"}}]}`,
		},
		"a request reaches the function, and its response the caller": {
			path: "beforeclustercreate/create", body: request("block"),
			want: created(`"status":"Success","message":"asked about c1","retryAfterSeconds":7`),
		},
		"the kind is that of the hook, even if the function replaces the response": {
			path: "beforeclustercreate/create", body: request("replace"),
			want: created(`"status":"Success","message":"asked about c1","retryAfterSeconds":0`),
		},
		"a panic is a failure without what the function had set, and says nothing of its cause": {
			path: "beforeclustercreate/create", body: request("panic"),
			want: created(`"status":"Failure","message":"the extension panicked, see the log of its server","retryAfterSeconds":0`),
		},
		"a function that does nothing succeeds": {
			path: "afterclusterupgrade/silent", body: `{}`,
			want: `{"kind":"AfterClusterUpgradeResponse","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","status":"Success","message":""}`,
		},
		"a request that is no JSON is a failure": {
			path: "beforeclustercreate/create", body: `nonsense`,
			want: created(`"status":"Failure","message":"cannot read the request: invalid character 'o' in literal null (expecting 'u')","retryAfterSeconds":0`),
		},
		"a request of another hook is a failure": {
			path: "beforeclustercreate/create", body: strings.ReplaceAll(request(""), "BeforeClusterCreate", "BeforeClusterDelete"),
			want: created(`"status":"Failure","message":"cannot read the request: it is a hooks.runtime.cluster.x-k8s.io/v1alpha1, Kind=BeforeClusterDeleteRequest, ` +
				`but must be a hooks.runtime.cluster.x-k8s.io/v1alpha1, Kind=BeforeClusterCreateRequest","retryAfterSeconds":0`),
		},
		"no memory is spent on a huge request": {
			path: "beforeclustercreate/create", body: request(strings.Repeat("x", 64<<20)),
			want: created(`"status":"Failure","message":"cannot read the request: http: request body too large","retryAfterSeconds":0`),
		},
	} {
		code, got := post(t, client, url+prefix+test.path, test.body)
		if code != http.StatusOK || !equal(got, test.want) {
			t.Errorf("%s: %d\n%s", reason, code, cmp.Diff(test.want, got))
		}
	}
	for path, want := range map[string]int{"beforeclustercreate/other": http.StatusNotFound, "beforeclusterdelete/create": http.StatusNotFound} {
		if code, _ := post(t, client, url+prefix+path, request("")); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+prefix+"discovery", http.NoBody)
	must(t, err)
	answer, err := client.Do(get)
	must(t, err)
	defer func() { must(t, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %s, want 405", answer.Status)
	}
}

// TestInvalid is about mistakes of authors: each is an error, and nothing of it is served.
func TestInvalid(t *testing.T) {
	catalog := runtimecatalog.New()
	if _, err := server.New(server.Options{Catalog: catalog}); err == nil || !strings.Contains(err.Error(), "AddToCatalog") {
		t.Errorf("an empty catalog: %v", err)
	}
	if _, err := server.New(server.Options{}); err == nil || !strings.Contains(err.Error(), "Options.Catalog") {
		t.Errorf("no catalog: %v", err)
	}
	must(t, runtimehooksv1.AddToCatalog(catalog))
	s, err := server.New(server.Options{Catalog: catalog})
	must(t, err)
	must(t, s.AddExtensionHandler(server.ExtensionHandler{Hook: runtimehooksv1.BeforeClusterCreate, Name: "taken", HandlerFunc: beforeCreate}))
	for want, h := range map[string]server.ExtensionHandler{
		"is not registered":           {Hook: beforeCreate, Name: "a", HandlerFunc: beforeCreate},
		"answers this hook itself":    {Hook: runtimehooksv1.Discovery, Name: "a", HandlerFunc: beforeCreate},
		"the name is invalid":         {Hook: runtimehooksv1.BeforeClusterCreate, Name: "a.b", HandlerFunc: beforeCreate},
		"already exists":              {Hook: runtimehooksv1.BeforeClusterCreate, Name: "taken", HandlerFunc: beforeCreate},
		"but must be a func(context.": {Hook: runtimehooksv1.BeforeClusterDelete, Name: "a", HandlerFunc: beforeCreate},
		"HandlerFunc is a <nil>":      {Hook: runtimehooksv1.BeforeClusterCreate, Name: "a"},
		"TimeoutSeconds is 31":        {Hook: runtimehooksv1.BeforeClusterCreate, Name: "a", HandlerFunc: beforeCreate, TimeoutSeconds: ptr.To[int32](31)},
		`FailurePolicy is "Retry"`:    {Hook: runtimehooksv1.BeforeClusterCreate, Name: "a", HandlerFunc: beforeCreate, FailurePolicy: ptr.To[runtimehooksv1.FailurePolicy]("Retry")},
	} {
		if err := s.AddExtensionHandler(h); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, but have %v", want, err)
		}
	}
}

// start serves handlers until the test ends, and returns a client that trusts the server.
func start(t *testing.T, handlers ...server.ExtensionHandler) (*server.Server, *http.Client, string) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	must(t, err)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	must(t, listener.Close())
	catalog := runtimecatalog.New()
	must(t, runtimehooksv1.AddToCatalog(catalog))
	s, err := server.New(server.Options{Catalog: catalog, Host: "127.0.0.1", Port: port, CertDir: dir})
	must(t, err)
	for _, h := range handlers {
		must(t, s.AddExtensionHandler(h))
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-done)
	})
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(client.CloseIdleConnections)
	for deadline := time.Now().Add(time.Minute); s.Healthy(nil) != nil; {
		if time.Now().After(deadline) {
			t.Fatalf("the server does not respond: %v", s.Healthy(nil))
		}
	}
	return s, client, "https://127.0.0.1:" + strconv.Itoa(port)
}

func post(t *testing.T, client *http.Client, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	must(t, err)
	answer, err := client.Do(request)
	must(t, err)
	defer func() { must(t, answer.Body.Close()) }()
	content, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, string(content)
}

// equal compares JSON, whatever the order of its fields.
func equal(a, b string) bool {
	canonical := func(s string) []byte {
		var v any
		if json.Unmarshal([]byte(s), &v) != nil {
			return []byte(s)
		}
		out, _ := json.Marshal(v)
		return out
	}
	return bytes.Equal(canonical(a), canonical(b))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
