package testenv

import (
	"context"
	"mime"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Run runs controllers until the test ends, in a manager with the kinds of scheme that caches like those of package manager, but only
// one namespace. It returns the record of their writes there.
func (e *Env) Run(t testing.TB, scheme *runtime.Scheme, namespace string, setup func(ctrl.Manager) error) *Requests {
	t.Helper()
	requests := &Requests{namespace: namespace, count: map[string]int{}}
	counted := rest.CopyConfig(e.Config)
	counted.Wrap(requests.wrap)
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		// Other tests of the process run controllers of the same names.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		// Reconciles that are running at the end of the test may take any time on a loaded machine.
		GracefulShutdownTimeout: ptr.To(time.Duration(-1)),
		Client: client.Options{Cache: &client.CacheOptions{
			Unstructured: true, DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	return requests
}

// Requests counts the writes to a namespace. It is safe for concurrent use.
type Requests struct {
	namespace string
	mu        sync.Mutex
	count     map[string]int
}

// Take returns the number of writes of each kind since the last call, such as "patch machines/status" or "apply machines by
// some-manager". Conflicts are not counted: they write nothing, and depend on timing.
func (r *Requests) Take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.count
	r.count = map[string]int{}
	return out
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (r *Requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(req)
		_, path, inNamespace := strings.Cut(req.URL.Path, "/namespaces/"+r.namespace+"/")
		if conflict := err == nil && response.StatusCode == http.StatusConflict; req.Method != http.MethodGet && inNamespace && !conflict {
			r.mu.Lock()
			r.count[write(req, path)]++
			r.mu.Unlock()
		}
		return response, err
	})
}

func write(req *http.Request, path string) string {
	parts := strings.Split(path, "/")
	out := verb(req) + " " + parts[0]
	if len(parts) > 2 {
		out += "/" + parts[2]
	}
	if manager := req.URL.Query().Get("fieldManager"); manager != "" {
		out += " by " + manager
	}
	return out
}

func verb(req *http.Request) string {
	switch req.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	}
	if content, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type")); strings.HasPrefix(content, "application/apply-patch+") {
		return "apply"
	}
	return strings.ToLower(req.Method)
}
