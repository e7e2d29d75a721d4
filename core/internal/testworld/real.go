package testworld

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Run runs controllers for one namespace of a real API server until the test ends, and counts their writes there.
func Run(t *testing.T, server *rest.Config, scheme *runtime.Scheme, namespace string, setup func(ctrl.Manager) error) *Requests {
	t.Helper()
	requests := &Requests{namespace: namespace, count: map[string]int{}}
	counted := rest.CopyConfig(server)
	counted.Wrap(requests.wrap)
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = mgr.Start(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return requests
}

// Requests counts the writes to a namespace.
type Requests struct {
	namespace string
	mu        sync.Mutex
	count     map[string]int
}

// Take returns and resets the number of each kind of write, such as "PATCH machines/status" or "PATCH machines by some-manager".
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
		// A conflict writes nothing, and the number of conflicts depends on timing.
		if conflict := err == nil && response.StatusCode == http.StatusConflict; req.Method != http.MethodGet && inNamespace && !conflict {
			r.mu.Lock()
			r.count[what(req, path)]++
			r.mu.Unlock()
		}
		return response, err
	})
}

func what(req *http.Request, path string) string {
	parts := strings.Split(path, "/")
	out := req.Method + " " + parts[0]
	if len(parts) > 2 {
		out += "/" + parts[2]
	}
	if manager := req.URL.Query().Get("fieldManager"); manager != "" {
		out += " by " + manager
	}
	return out
}
