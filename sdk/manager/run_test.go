package manager

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// apiServer answers the few questions that a manager without controllers asks: version, kinds, and who may see metrics.
func apiServer(t *testing.T, version string) *rest.Config {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]string{"gitVersion": version})
	})
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIVersions{Versions: []string{"v1"}})
	})
	mux.HandleFunc("GET /apis", func(w http.ResponseWriter, _ *http.Request) { answer(w, metav1.APIGroupList{}) })
	mux.HandleFunc("GET /api/v1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "secrets", Kind: "Secret", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}},
		}})
	})
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, r *http.Request) {
		review := &authenticationv1.TokenReview{}
		_ = json.NewDecoder(r.Body).Decode(review)
		review.Status.Authenticated = review.Spec.Token != "forged"
		review.Status.User.Username = review.Spec.Token
		answer(w, review)
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		review := &authorizationv1.SubjectAccessReview{}
		_ = json.NewDecoder(r.Body).Decode(review)
		review.Status.Allowed = review.Spec.User == "prometheus" && review.Spec.NonResourceAttributes.Path == "/metrics"
		answer(w, review)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	// Reviews are sent as protobuf by default.
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// silent is a logger without output. The zero Logger would mean klog.
func silent() logr.Logger {
	return funcr.New(func(string, string) {}, funcr.Options{})
}

// sockets are the listeners of a hosted component, one unix socket per purpose.
type sockets struct {
	dir string
	mu  sync.Mutex
	got []string
}

func (s *sockets) listen(purpose string) (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, purpose)
	return net.Listen("unix", filepath.Join(s.dir, purpose))
}

// get sends one request to a purpose's listener.
func (s *sockets) get(t *testing.T, purpose, url, token string) (int, string) {
	t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.dir, purpose))
		},
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatalf("asking %s: %v", purpose, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// hosted runs a component in this process until the test ends, and returns once it has started.
func hosted(t *testing.T, c Component, h Host, args ...string) *sockets {
	t.Helper()
	s := &sockets{dir: t.TempDir()}
	h.Listen = s.listen
	if h.Config == nil {
		h.Config = apiServer(t, "v1.36.3")
	}
	if h.Getenv == nil {
		h.Getenv = func(string) string { return "" }
	}
	started := make(chan struct{})
	setup := c.Setup
	c.Setup = func(ctx context.Context, mgr ctrl.Manager, env Environment) error {
		go func() {
			<-mgr.Elected()
			close(started)
		}()
		if setup == nil {
			return nil
		}
		return setup(ctx, mgr, env)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c, args, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ending: %v", err)
		}
	})
	select {
	case <-started:
	case err := <-ended:
		ended <- nil
		t.Fatalf("the component did not start: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the component did not start")
	}
	return s
}

func TestHostedEndpoints(t *testing.T) {
	c := testComponent()
	c.WebhookService = "test-webhook-service"
	c.Setup = func(_ context.Context, mgr ctrl.Manager, _ Environment) error {
		mgr.GetWebhookServer().Register("/answer", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "answer")
		}))
		return mgr.AddReadyzCheck("own", func(*http.Request) error { return nil })
	}
	s := hosted(t, c, Host{Logger: silent()}, "--leader-elect", "--profiler-address=localhost:0")

	tests := map[string]struct {
		reason, purpose, url, token string
		want                        int
		wantBody                    string
	}{
		"webhook":              {"webhooks are served with TLS", ListenWebhook, "https://any/answer", "", 200, "answer"},
		"alive":                {"the webhook server has started", ListenHealth, "http://any/healthz?verbose", "", 200, "[+]webhook ok"},
		"ready":                {"so it is ready", ListenHealth, "http://any/readyz?verbose", "", 200, "[+]webhook ok"},
		"ready by itself":      {"a check can be asked alone", ListenHealth, "http://any/readyz/webhook", "", 200, "ok"},
		"ready by component":   {"components add their own checks", ListenHealth, "http://any/readyz/own", "", 200, "ok"},
		"metrics":              {"who may see metrics sees them", ListenDiagnostics, "https://any/metrics", "prometheus", 200, "controller_runtime_"},
		"metrics, anonymous":   {"anonymous requests are rejected", ListenDiagnostics, "https://any/metrics", "", 401, ""},
		"metrics, forged":      {"tokens are verified", ListenDiagnostics, "https://any/metrics", "forged", 401, "Unauthorized"},
		"metrics, not allowed": {"permissions are checked", ListenDiagnostics, "https://any/metrics", "somebody", 403, ""},
		"profile, not allowed": {"for every path", ListenDiagnostics, "https://any/debug/pprof/heap", "prometheus", 403, ""},
		"profiler":             {"the insecure profiler is served if enabled", ListenProfiler, "http://any/debug/pprof/cmdline", "", 200, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, body := s.get(t, tt.purpose, tt.url, tt.token)
			if code != tt.want || !strings.Contains(body, tt.wantBody) {
				t.Errorf("%s: got %d\n%s", tt.reason, code, body)
			}
		})
	}
}

func TestEndpointFlags(t *testing.T) {
	tests := map[string]struct {
		reason   string
		args     []string
		purposes []string
		plain    bool
	}{
		"defaults": {
			reason:   "health and diagnostics are served by default",
			purposes: []string{ListenHealth, ListenDiagnostics},
		},
		"off": {
			reason: "both can be switched off",
			args:   []string{"--health-addr=0", "--diagnostics-address="},
		},
		"insecure": {
			reason:   "plain metrics",
			args:     []string{"--insecure-diagnostics"},
			purposes: []string{ListenHealth, ListenDiagnostics},
			plain:    true,
		},
		"deprecated": {
			reason:   "the deprecated flag overrules the diagnostics flags",
			args:     []string{"--metrics-bind-addr=localhost:8080", "--diagnostics-address=0"},
			purposes: []string{ListenHealth, ListenDiagnostics},
			plain:    true,
		},
		"deprecated, off": {
			reason:   "and switches off what it overrules",
			args:     []string{"--metrics-bind-addr=0"},
			purposes: []string{ListenHealth},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := hosted(t, testComponent(), Host{Logger: silent(), Stderr: io.Discard}, tt.args...)
			if diff := cmp.Diff(tt.purposes, s.got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if !tt.plain {
				return
			}
			if code, _ := s.get(t, ListenDiagnostics, "http://any/metrics", ""); code != 200 {
				t.Errorf("%s: metrics answer %d", tt.reason, code)
			}
			if code, _ := s.get(t, ListenDiagnostics, "http://any/debug/pprof/heap", ""); code != 404 {
				t.Errorf("%s: profiles respond with %d, but must be protected", tt.reason, code)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	var got Environment
	c := testComponent()
	c.Setup = func(_ context.Context, _ ctrl.Manager, env Environment) error {
		got = env
		return nil
	}
	var lines []string
	var mu sync.Mutex
	log := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})
	getenv := func(name string) string { return map[string]string{"POD_NAME": "test-0"}[name] }
	hosted(t, c, Host{Logger: log, Getenv: getenv, Namespace: "own"}, "--namespace=team-a", "--watch-filter=blue", "--leader-elect")

	want := Environment{
		WatchFilter: "blue", WatchNamespace: "team-a", Namespace: "own", ExclusiveFor: 5 * time.Second,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Environment{}, "Dial", "Getenv", "UserAgent", "CheckLeader", "NewCache", "Watches")); diff != "" {
		t.Errorf("the component must get the values of flags and host (-want +got):\n%s", diff)
	}
	if got.NewCache == nil || got.Watches == nil {
		t.Error("the component must get functions for another cache, and for what it can watch")
	}
	if got.Getenv("POD_NAME") != "test-0" || !strings.HasPrefix(got.UserAgent, "test-controller/") {
		t.Errorf("environment %q, user agent %q", got.Getenv("POD_NAME"), got.UserAgent)
	}
	mu.Lock()
	defer mu.Unlock()
	if all := strings.Join(lines, "\n"); !strings.Contains(all, "Ignoring --leader-elect") {
		t.Errorf("skipping leader election must be logged:\n%s", all)
	}
}

func TestRunFails(t *testing.T) {
	broken := errors.New("this index exists already")
	tests := map[string]struct {
		reason    string
		component func(*Component)
		host      func(*Host)
		want      string
	}{
		"old cluster": {
			reason: "an old management cluster is rejected",
			host:   func(h *Host) { h.Config = apiServer(t, "v1.19.0") },
			want:   "the management cluster runs Kubernetes v1.19.0: upgrade it to v1.20.0 or later",
		},
		"setup": {
			reason: "a component that cannot be set up is not started",
			component: func(c *Component) {
				c.Setup = func(context.Context, ctrl.Manager, Environment) error { return broken }
			},
			want: "setting up: this index exists already",
		},
		"listener": {
			reason: "a listener that cannot be opened is named",
			host: func(h *Host) {
				h.Listen = func(string) (net.Listener, error) { return nil, errors.New("address in use") }
			},
			want: "listening for healthz requests: address in use",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := testComponent()
			s := &sockets{dir: t.TempDir()}
			h := Host{Config: apiServer(t, "v1.36.3"), Listen: s.listen, Logger: silent()}
			if tt.component != nil {
				tt.component(&c)
			}
			if tt.host != nil {
				tt.host(&h)
			}
			err := Run(t.Context(), c, nil, h)
			if err == nil || err.Error() != tt.want {
				t.Errorf("%s: got error %v, want %q", tt.reason, err, tt.want)
			}
			for _, purpose := range s.got {
				if _, err := net.Dial("unix", filepath.Join(s.dir, purpose)); err == nil {
					t.Errorf("%s: the listener for %s was left open", tt.reason, purpose)
				}
			}
		})
	}
}
