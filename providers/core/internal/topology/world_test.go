package topology

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/clusterclass"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/classes"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// world is a namespace with the class of testdata. The topology controller runs on demand, so that its requests can be
// counted. The ClusterClass controller runs in a manager.
type world struct {
	t testing.TB
	// Client is the client of the user.
	client.Client
	namespace string
	cached    client.Reader
	runner    *step.Runner[*clusterv1.Cluster]
	control   *Controller
	requests  *requests
	events    *record.FakeRecorder
}

// requests records requests to the API server, except for watches and lists of caches.
type requests struct {
	mu  sync.Mutex
	all []string
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		query := req.URL.Query()
		if query.Get("watch") == "" && !query.Has("limit") {
			parts := strings.Split(req.URL.Path, "/")
			what := parts[len(parts)-1]
			if slices.Contains(parts, "namespaces") && len(parts) > 6 {
				what = strings.Join(parts[6:], "/")
			}
			method := req.Method
			if query.Has("dryRun") {
				method = "DRY-RUN"
			}
			r.mu.Lock()
			r.all = append(r.all, method+" "+what)
			r.mu.Unlock()
		}
		return next.RoundTrip(req)
	})
}

// take returns the requests since the last call, sorted.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.all)
	r.all = nil
	slices.Sort(all)
	return all
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newWorld(t testing.TB) *world {
	t.Helper()
	e := server.Start(t, "providers/core/config/crd", "providers/bootstrap-kubeadm/config/crd", "providers/control-plane-kubeadm/config/crd", "providers/infrastructure-in-memory/config/crd")
	s := testenv.Scheme(t)
	w := &world{t: t, Client: e.NewClient(t, s), namespace: e.Namespace(t), requests: &requests{}, events: record.NewFakeRecorder(100)}
	e.Run(t, s, w.namespace, func(mgr ctrl.Manager) error {
		return clusterclass.Setup(t.Context(), mgr, clusterclass.Options{Concurrency: 1})
	})
	counted := rest.CopyConfig(e.Config)
	counted.Wrap(w.requests.wrap)
	own, err := cluster.New(counted, func(o *cluster.Options) { o.Scheme = s })
	if err != nil {
		t.Fatal(err)
	}
	testenv.Must(t, classes.Index(t.Context(), own.GetFieldIndexer()))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = own.Start(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	if !own.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache does not sync")
	}
	w.cached = own.GetCache()
	c := newController(step.Clients{Client: own.GetClient(), Live: own.GetAPIReader(), Recorder: w.events, Clock: clock.RealClock{}},
		w.cached, plan.NewClasses(nil))
	w.control, w.runner = c, c.declared().Runner(c.Clients)
	w.applyFile("testdata/class.yaml")
	w.reconciledClass("simple")
	return w
}

// reconciledClass waits until the cache has a reconciled class.
func (w *world) reconciledClass(name string) {
	w.t.Helper()
	w.eventually("class "+name+" is reconciled", func() error {
		class := &clusterv1.ClusterClass{}
		if err := w.cached.Get(w.t.Context(), w.key(name), class); err != nil {
			return err
		}
		if class.Generation != class.Status.ObservedGeneration {
			return fmt.Errorf("observed %d of %d: %v", class.Status.ObservedGeneration, class.Generation, class.GetV1Beta1Conditions())
		}
		return nil
	})
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

func (w *world) applyFile(path string) {
	w.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(u); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			w.t.Fatal(err)
		}
		u.SetNamespace(w.namespace)
		testenv.Must(w.t, w.Create(w.t.Context(), u))
	}
}

func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	testenv.Eventually(w.t, what, check)
}

// waitCached waits until the controller's cache has what the user's client wrote last.
func (w *world) waitCached(written client.Object) {
	w.t.Helper()
	w.eventually("the cache has "+written.GetName(), func() error {
		seen := written.DeepCopyObject().(client.Object)
		if err := w.cached.Get(w.t.Context(), client.ObjectKeyFromObject(written), seen); err != nil {
			return err
		}
		// The ClusterClass controller may have written a class since.
		version, err := strconv.Atoi(seen.GetResourceVersion())
		if want, _ := strconv.Atoi(written.GetResourceVersion()); err != nil || version < want {
			return fmt.Errorf("version %s, want %d or later: %w", seen.GetResourceVersion(), want, err)
		}
		return nil
	})
}

// cluster returns a Cluster of the class with one MachineDeployment.
func (w *world) cluster(name string) *clusterv1.Cluster {
	one := int32(1)
	return object.Builder{Namespace: w.namespace, ClusterName: name}.Cluster(func(c *clusterv1.Cluster) {
		c.Spec.Topology = clusterv1.Topology{
			ClassRef: clusterv1.ClusterClassRef{Name: "simple"}, Version: "v1.30.0",
			ControlPlane: clusterv1.ControlPlaneTopology{Replicas: &one, Metadata: clusterv1.ObjectMeta{Labels: map[string]string{"from": "topology"}}},
			Workers: clusterv1.WorkersTopology{MachineDeployments: []clusterv1.MachineDeploymentTopology{
				{Class: "worker", Name: "md-0", Replicas: &one},
			}},
		}
	})
}

// created creates an object and waits until it is cached.
func (w *world) created(o client.Object) {
	w.t.Helper()
	testenv.Must(w.t, w.Create(w.t.Context(), o))
	w.waitCached(o)
}

// changed changes an object as the user and waits until the change is cached.
func changed[T client.Object](w *world, o T, change func(T)) {
	w.t.Helper()
	testenv.Must(w.t, w.Get(w.t.Context(), client.ObjectKeyFromObject(o), o))
	change(o)
	testenv.Must(w.t, w.Update(w.t.Context(), o))
	w.waitCached(o)
}

// reconciled runs the controller once, waits until its writes are cached, and returns its requests.
func (w *world) reconciled(c *clusterv1.Cluster) []string {
	w.t.Helper()
	w.requests.take()
	if _, err := w.runner.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
		w.t.Fatalf("reconciling: %v", err)
	}
	done := w.requests.take()
	testenv.Must(w.t, w.Get(w.t.Context(), client.ObjectKeyFromObject(c), c))
	w.waitCached(c)
	return done
}

func raw(value string) apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(value)} }
