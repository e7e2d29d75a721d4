package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/providers/operator/internal/engine"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/providers/operator/internal/source"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

// world is a management cluster in memory, with the controllers of all kinds, a core provider that is ready, and an internet.
type world struct {
	*fakeapi.Server
	t      *testing.T
	engine *engine.Engine
	source *source.Reader
	// controllers are those of the types that were reconciled.
	controllers map[clusterctlv1.ProviderType]*Controller
	// hosts respond to requests, by name; others do not exist.
	hosts map[string]http.HandlerFunc
	// requests are the URLs that were requested.
	requests []string
	// unavailable is set while Deployments do not become available.
	unavailable bool
	// stopping is set while Deployments without replicas still have a Pod.
	stopping bool
	log      strings.Builder
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	testenv.Must(t, yaml.Unmarshal(inventory.CRD(), definition))
	definition.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	core := &operatorv1.CoreProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: "cluster-api", UID: "core"}}
	core.Status.InstalledVersion, core.Status.Contract = ptr.To("v1.0.0"), ptr.To("v1beta1")
	condition.Set(core, condition.True(operatorv1.ReadyCondition))
	w := &world{t: t, controllers: map[clusterctlv1.ProviderType]*Controller{}, hosts: map[string]http.HandlerFunc{}}
	w.Server = fakeapi.New(t, fakeapi.Options{
		Kinds:   []func(*runtime.Scheme) error{operatorv1.AddToScheme, clusterctlv1.AddToScheme},
		Objects: append([]client.Object{definition, core}, objects...),
	})
	w.After = w.deployments
	clients := w.ForController()
	direct, ok := clients.Client.(client.WithWatch)
	if !ok {
		t.Fatalf("%T cannot watch", clients.Client)
	}
	w.engine = &engine.Engine{Client: direct, Resources: resources{}, Timeout: time.Second,
		Hold: func(ctx context.Context, run func(context.Context) error) error { return run(ctx) }}
	w.source = &source.Reader{
		Live: clients.Client, Clock: w.Clock, Config: source.ConfigFile("", func(string) (string, bool) { return "", false }),
		Options: repository.Options{SingleAttempt: true, Advice: source.Advice(), HTTP: &http.Client{Transport: w}},
	}
	return w
}

// deployments makes Deployments available, or not, when they are written.
func (w *world) deployments(r fakeapi.Request, err error) error {
	if r.Kind != "Deployment" || !r.IsWrite() || r.Verb == "delete" || err != nil {
		return err
	}
	d := &appsv1.Deployment{}
	testenv.Must(w.t, w.Get(w.t.Context(), client.ObjectKeyFromObject(r.Object), d))
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: ptr.Deref(d.Spec.Replicas, 1)}
	if w.stopping {
		d.Status.Replicas = max(1, d.Status.Replicas)
	}
	d.Status.UpdatedReplicas, d.Status.AvailableReplicas = d.Status.Replicas, d.Status.Replicas
	available := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}
	if w.unavailable {
		d.Status.AvailableReplicas = 0
		available.Status, available.Reason, available.Message = corev1.ConditionFalse, "MinimumReplicasUnavailable", "it has no image"
	}
	d.Status.Conditions = []appsv1.DeploymentCondition{available}
	return w.Status().Update(w.t.Context(), d)
}

// resources lists the kinds that providers of tests have.
type resources struct {
	discovery.ServerResourcesInterface
}

// ServerPreferredResources implements discovery.ServerResourcesInterface.
func (resources) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	list := func(version string, kinds ...string) *metav1.APIResourceList {
		l := &metav1.APIResourceList{GroupVersion: version}
		for _, kind := range kinds {
			l.APIResources = append(l.APIResources, metav1.APIResource{Kind: kind, Verbs: metav1.Verbs{"list", "delete"}})
		}
		return l
	}
	return []*metav1.APIResourceList{
		list("v1", "ConfigMap", "Secret", "Service", "ServiceAccount", "Namespace"), list("apps/v1", "Deployment"),
		list("rbac.authorization.k8s.io/v1", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
	}, nil
}

// RoundTrip implements http.RoundTripper: the internet of this world.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.requests = append(w.requests, r.URL.String())
	respond := w.hosts[r.URL.Host]
	if respond == nil {
		return nil, fmt.Errorf("%s does not exist", r.URL.Host)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	out := &response{header: http.Header{}, status: http.StatusOK}
	respond(out, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: out.status, Status: fmt.Sprint(out.status, " ", http.StatusText(out.status)), Header: out.header, Request: r,
		Body: io.NopCloser(io.MultiReader(&out.body, ending{out.header.Get("Content-Length") != ""})),
	}, nil
}

// response implements http.ResponseWriter.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *response) Header() http.Header               { return r.header }
func (r *response) WriteHeader(status int)            { r.status = status }
func (r *response) Write(content []byte) (int, error) { return r.body.Write(content) }

// ending is the end of a body, which is too early if the header promised more.
type ending struct{ isEarly bool }

// Read implements io.Reader.
func (e ending) Read([]byte) (int, error) {
	if e.isEarly {
		return 0, io.ErrUnexpectedEOF
	}
	return 0, io.EOF
}

// controller returns the controller of a type.
func (w *world) controller(of clusterctlv1.ProviderType) *Controller {
	if c := w.controllers[of]; c != nil {
		return c
	}
	for _, k := range providerobject.Kinds() {
		if k.Type == of {
			clients := w.ForController()
			watched := newInputs(func(context.Context, source.Input, func()) (client.Reader, error) { return clients.Client, nil })
			testenv.Must(w.t, watched.start(w.t.Context(), nil))
			w.controllers[of] = &Controller{
				Clients: clients, kind: k, cached: clients.Client, engine: w.engine, source: w.source, inputs: watched, drift: newDrift(),
			}
		}
	}
	return w.controllers[of]
}

// create creates the objects of YAML documents, provider objects among them.
func (w *world) create(documents string) {
	w.t.Helper()
	for document := range strings.SplitSeq(documents, "\n---\n") {
		meta := &metav1.PartialObjectMetadata{}
		testenv.Must(w.t, yaml.Unmarshal([]byte(document), meta))
		obj, err := w.Scheme().New(meta.GroupVersionKind())
		testenv.Must(w.t, err, yaml.UnmarshalStrict([]byte(document), obj))
		o, ok := obj.(client.Object)
		if !ok {
			w.t.Fatalf("%T is not an object", obj)
		}
		if secret, ok := o.(*corev1.Secret); ok {
			secret.Data = map[string][]byte{}
			for key, value := range secret.StringData {
				secret.Data[key] = []byte(value)
			}
			secret.StringData = nil
		}
		testenv.Must(w.t, w.Create(w.t.Context(), o))
	}
}

// provider returns the provider object of a type.
func (w *world) provider(of clusterctlv1.ProviderType, namespace, name string) providerobject.Provider {
	w.t.Helper()
	p := providerobject.Provider{Type: of, Object: w.controller(of).kind.New()}
	testenv.Must(w.t, w.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, p.Object))
	return p
}

// change changes the spec of a provider object by a merge patch, as users do.
func (w *world) change(p providerobject.Provider, spec string) {
	w.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte("spec: " + strings.ReplaceAll(spec, "\n", "\n  ")))
	testenv.Must(w.t, err, w.Patch(w.t.Context(), p.Object, client.RawPatch("application/merge-patch+json", raw)))
	p.SetGeneration(p.GetGeneration() + 1)
	testenv.Must(w.t, w.Update(w.t.Context(), p.Object))
}

// reconcile reconciles a provider object, and returns it. Errors are in its conditions.
func (w *world) reconcile(p providerobject.Provider) providerobject.Provider {
	w.t.Helper()
	c := w.controller(p.Type)
	log := funcr.New(func(prefix, args string) { fmt.Fprintln(&w.log, prefix, args) }, funcr.Options{Verbosity: 9})
	ctx := ctrl.LoggerInto(w.t.Context(), log)
	result, err := c.declared().Runner(c.Clients).Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)})
	fmt.Fprintln(&w.log, result, err)
	return w.provider(p.Type, p.GetNamespace(), p.GetName())
}

// reports checks that a condition has words: "False Reason: message".
func (w *world) reports(p providerobject.Provider, kind clusterv1.ConditionType, words ...string) {
	w.t.Helper()
	text := "none"
	if c := condition.Get(p, kind); c != nil {
		text = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			w.t.Errorf("%q is not in condition %s: %s", word, kind, text)
		}
	}
}

// requested returns how many requests had a part of a URL.
func (w *world) requested(part string) int {
	count := 0
	for _, url := range w.requests {
		if strings.Contains(url, part) {
			count++
		}
	}
	return count
}

// deployment returns the Deployment of a simple release.
func (w *world) deployment(namespace, provider string) *appsv1.Deployment {
	w.t.Helper()
	d := &appsv1.Deployment{}
	testenv.Must(w.t, w.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: simpleDeployment(provider)}, d))
	return d
}

func simpleDeployment(provider string) string { return "ca-" + provider + "-controller-manager" }

// simpleRelease is a release of a provider with one Deployment.
func simpleRelease(provider, version string) (components, metadata string) {
	const series = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 0, minor: 3, contract: v1beta1}
- {major: 0, minor: 4, contract: v1beta1}
- {major: 0, minor: 6, contract: v1beta1}
- {major: 1, minor: 0, contract: v1beta1}
`
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: x-system}
spec:
  selector: {matchLabels: {control-plane: x}}
  template:
    metadata: {labels: {control-plane: x}}
    spec:
      containers:
      - {name: manager, image: "registry.example.com/x/controller:%s", args: [--leader-elect]}
`, simpleDeployment(provider), version), series
}

// simpleConfigMap returns a ConfigMap with a simple release of a provider, which is its label.
func simpleConfigMap(namespace, provider, version string) *corev1.ConfigMap {
	components, metadata := simpleRelease(provider, version)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: version, Labels: map[string]string{"provider-components": provider}},
		Data:       map[string]string{"components": components, "metadata": metadata},
	}
}

// encoded returns a value as JSON.
func encoded(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	testenv.Must(t, err)
	return string(raw)
}
