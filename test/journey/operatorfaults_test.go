package journey

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	declared "sigs.k8s.io/cluster-api/internal/distribution/operated"
	"sigs.k8s.io/cluster-api/provider/testenv"
	"sigs.k8s.io/cluster-api/test/managers"
)

// cutter is a proxy of an API server for one program. After every write it can end the program.
type cutter struct {
	*httptest.Server

	mu sync.Mutex
	// end ends the program; nil: it lives on.
	end func()
	// writes are the requests that ended the program, and those after which it was to live on.
	writes []string
}

// newCutter starts a proxy of the API server of a kubeconfig.
func newCutter(t *testing.T, kubeconfig string) *cutter {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	testenv.Must(t, err)
	transport, err := rest.TransportFor(config)
	testenv.Must(t, err)
	target, err := url.Parse(config.Host)
	testenv.Must(t, err)
	c := &cutter{}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode >= http.StatusMultipleChoices {
				return nil // Nothing was written.
			}
			return c.written(r.Request)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	c.Server = httptest.NewServer(proxy)
	t.Cleanup(func() {
		c.CloseClientConnections()
		c.Close()
	})
	return c
}

// errEnded makes the proxy lose a response.
var errEnded = errors.New("the program was ended")

// written ends the program if the request was a write of its own work: Leases and events are not.
func (c *cutter) written(r *http.Request) error {
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	if isRead || strings.Contains(r.URL.Path, "/leases") || strings.Contains(r.URL.Path, "/events") || r.URL.Query().Has("dryRun") {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	write := r.Method + " " + r.URL.Path
	again := slices.Contains(c.writes, write)
	c.writes = append(c.writes, write)
	if c.end == nil || again {
		return nil // The same write may have changed nothing, and come first again.
	}
	c.end()
	c.end = nil
	return errEnded
}

// kubeconfig writes a kubeconfig for the proxy.
func (c *cutter) kubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	testenv.Must(t, os.WriteFile(file, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
`, c.URL), 0o600))
	return file
}

// mostEnds is more than the writes that any phase of TestOperatorKilled needs.
const mostEnds = 400

// quiet is how long an operator that has nothing left to do is observed.
const quiet = 2 * time.Second

// killedUntil runs the operator, which is killed after each of its writes, until done reports an empty string.
func (o *operated) killedUntil(c *cutter, m *managers.Manager, what string, done func() string) {
	o.t.Helper()
	start := time.Now()
	for n := range mostEnds {
		testenv.Must(o.t, m.Start())
		running := m.Running
		c.mu.Lock()
		before := len(c.writes)
		c.end = func() { _ = running.Kill() }
		c.mu.Unlock()
		if !o.survives(c, m, before, done) {
			continue
		}
		testenv.Must(o.t, m.Stop())
		o.t.Logf("%s: killed %d times, %s", what, n, time.Since(start).Round(time.Second))
		return
	}
	o.t.Fatalf("%s: not done after %d kills: %s; the last writes: %v", what, mostEnds, done(), c.writes[max(0, len(c.writes)-10):])
}

// survives waits until the operator is killed, which it reports as false, or has been idle and done for a while.
func (o *operated) survives(c *cutter, m *managers.Manager, before int, done func() string) bool {
	o.t.Helper()
	var since time.Time
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(2 * time.Minute)
	for {
		select {
		case <-m.Running.Exited():
			c.mu.Lock()
			defer c.mu.Unlock()
			if len(c.writes) == before {
				o.t.Fatalf("the operator exits: %s", m.Running.Tail())
			}
			return false
		case <-limit:
			o.t.Fatalf("not done, and nothing is written: %s", done())
		case now := <-tick.C:
			if since.IsZero() || done() != "" {
				since = now
			}
			if now.Sub(since) > quiet {
				return true
			}
		}
	}
}

// isReady returns what a provider lacks until it is ready in a version.
func (o *operated) isReady(reader client.Reader, p operatedProvider, version string) string {
	o.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(declared.Kind(clusterctlv1.ProviderType(p.kind)))
	testenv.Must(o.t, reader.Get(o.t.Context(), client.ObjectKey{Namespace: p.namespace, Name: p.name}, u))
	installed, _, _ := unstructured.NestedString(u.Object, "status", "installedVersion")
	seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	isReady := slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Ready" && condition["status"] == "True"
	})
	if installed != version || seen != u.GetGeneration() || !isReady {
		return fmt.Sprintf("%s has version %q, generation %d of %d, conditions %v", p.object(), installed, seen, u.GetGeneration(), conditions)
	}
	return ""
}

// TestOperatorKilled kills the operator after each of its writes, whose response is lost, while it installs, changes, upgrades and deletes
// providers. The end is that of an undisturbed operator, and nothing is left of what happened between.
func TestOperatorKilled(t *testing.T) {
	t.Parallel()
	r := NewRepository(t, shared.Management(t).Tools)
	r.Release("v2.0.0")
	o := &operated{NewStandalone(t, r.Tools), t}
	o.install()
	o.kubectl("", "delete", "deployment", "--all", "-n", "capi-operator-system")
	o.kubectl("", "delete", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "-l", "clusterctl.cluster.x-k8s.io/core=capi-operator")
	c := newCutter(t, o.kubeconfig())
	m, err := managers.NewManager(r.Tools.Root, t.TempDir(), "operator", managers.Program{Name: "cluster-api-operator", Component: "operator"}, c.kubeconfig(t))
	testenv.Must(t, err)
	m.Args = []string{"--leader-elect=false"} // A killed leader keeps its Lease for a while.
	t.Cleanup(func() { testenv.Must(t, m.Stop()) })

	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig())
	testenv.Must(t, err)
	reader, err := client.New(config, client.Options{})
	testenv.Must(t, err)
	core, infrastructure := operatedProviders()[0], operatedProviders()[3]
	for _, p := range []operatedProvider{core, infrastructure} {
		o.kubectl("", "create", "namespace", p.namespace)
		o.declare(p, "v2.0.0")
	}
	both := func(version string) func() string {
		return func() string { return o.isReady(reader, core, version) + o.isReady(reader, infrastructure, version) }
	}
	o.killedUntil(c, m, "installation", both("v2.0.0"))
	want := []string{
		"ConfigMap capi-system/core-cluster-api-v2.0.0", "ConfigMap capim-system/infrastructure-in-memory-v2.0.0",
		"Deployment capi-system/capi-controller-manager", "Deployment capim-system/capim-controller-manager",
		"Provider capi-system/cluster-api", "Provider capim-system/infrastructure-in-memory",
		"Secret capi-system/capi-webhook-service-cert", "Secret capim-system/capim-webhook-service-cert",
	}
	const kinds = "deployments,secrets,configmaps,providers.clusterctl.cluster.x-k8s.io"
	place := func() []string {
		return slices.DeleteFunc(o.names(kinds, " capi"), func(name string) bool {
			return strings.Contains(name, "capi-operator-system") || strings.HasSuffix(name, "/variables")
		})
	}
	if diff := cmp.Diff(want, place()); diff != "" {
		t.Errorf("installed: -want +got:\n%s", diff)
	}

	o.kubectl("", "patch", infrastructureObject, "-n", infrastructurePlace, "--type", "merge", "-p", `{"spec": {"manager": {"verbosity": 4}}}`)
	o.killedUntil(c, m, "change", both("v2.0.0"))
	o.says(o.kubectl("", "get", "deployment", "-n", infrastructurePlace, "-o", "jsonpath={.items[*].spec.template.spec.containers[*].args}"), "--v=4")

	r.Release("v2.0.1")
	o.declare(core, "v2.0.1")
	o.declare(infrastructure, "v2.0.1")
	o.killedUntil(c, m, "upgrade", both("v2.0.1"))
	for i, name := range want {
		if kind, _, _ := strings.Cut(name, " "); kind == "ConfigMap" {
			want = append(want, strings.Replace(want[i], "v2.0.0", "v2.0.1", 1))
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, place()); diff != "" {
		t.Errorf("upgraded: -want +got:\n%s", diff)
	}

	o.kubectl("", "delete", infrastructure.object(), "-n", infrastructure.namespace, "--wait=false")
	o.killedUntil(c, m, "deletion", func() string {
		return o.kubectl("", "get", infrastructure.object(), "-n", infrastructure.namespace, "--ignore-not-found", "-o", "name")
	})
	for _, kinds := range []string{"deployments,services,serviceaccounts", "clusterroles,clusterrolebindings", "validatingwebhookconfigurations,mutatingwebhookconfigurations"} {
		if left := o.names(kinds, "/capim"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}
