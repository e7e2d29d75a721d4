package apiversion

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// Code of both versions works with whatever the definition serves and stores. The conversion webhook fails each request.
func TestBoundary(t *testing.T) {
	e := server.Start(t, "providers/core/config/crd/cluster.x-k8s.io_machines.yaml")
	situations := []struct {
		reason, stored string
		served         []string
	}{
		{reason: "v1beta1 alone", stored: older, served: []string{older}},
		{reason: "both, v1beta1 stored", stored: older, served: []string{older, newer}},
		{reason: "both, v1beta2 stored", stored: newer, served: []string{older, newer}},
	}
	var before *program // runs while the definition changes
	for _, s := range situations {
		define(t, e, s.stored, s.served...)
		t.Run(s.reason, func(t *testing.T) {
			for _, version := range []string{older, newer} {
				t.Run("code in "+version, func(t *testing.T) {
					p := start(t, e, version)
					p.lifecycle(t, s.stored)
					p.expectRequests(t, s.stored)
				})
			}
		})
		if before == nil {
			before = start(t, e, newer)
		}
		testenv.Eventually(t, "the change to be noticed", func() error {
			if got, err := before.boundary.Stored(t.Context(), machineKind()); err != nil || got != s.stored {
				return fmt.Errorf("stored: %s, %w", got, err)
			}
			return nil
		})
		before.lifecycle(t, s.stored)
	}
}

// define changes the definition of Machines. No Machine may exist.
func define(t *testing.T, e *testenv.Env, stored string, served ...string) {
	t.Helper()
	c := e.NewClient(t, testenv.Scheme(t))
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.Get(t.Context(), client.ObjectKey{Name: "machines.cluster.x-k8s.io"}, crd); err != nil {
			return err
		}
		crd.Status.StoredVersions = []string{older} // No object is stored in another version.
		if err := c.Status().Update(t.Context(), crd); err != nil {
			return err
		}
		v1beta1 := crd.Spec.Versions[slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == older
		})]
		v1beta2 := apiextensionsv1.CustomResourceDefinitionVersion{
			Name: newer, Served: true, Subresources: v1beta1.Subresources,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: ptr.To(true),
			}},
		}
		v1beta1.Storage, v1beta2.Storage = stored == older, stored == newer
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{v1beta1, v1beta2}[:len(served)]
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/convert")},
				ConversionReviewVersions: []string{"v1"},
			},
		}
		return c.Update(t.Context(), crd)
	})
	if err != nil {
		t.Fatal(err)
	}
	probe, err := New(Options{Config: e.Config, HTTPClient: httpClient(t, e.Config), Scheme: newScheme(t), Registry: newMachines()})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "discovery to have the definition", func() error {
		for _, v := range served {
			list, err := probe.stored.resources.list(t.Context(), schema.GroupVersion{Group: clusterv1.GroupVersion.Group, Version: v})
			if err != nil || !slices.ContainsFunc(list, func(r metav1.APIResource) bool {
				return r.Kind == "Machine" && r.StorageVersionHash == hash(machineKind().WithVersion(stored))
			}) {
				return fmt.Errorf("%v, %w", list, err)
			}
		}
		return nil
	})
}

// program is a client and a cache, as a manager has them.
type program struct {
	boundary *Boundary
	version  string
	client   client.Client // writes, and reads from the cache
	live     client.Reader
	raw      client.Client // without the boundary
	scope    string
	lister   toolscache.ListerWithContext
	events   chan event
	wire     testenv.Wire
}

// event is an event of an informer.
type event struct {
	change string
	obj    client.Object
}

func httpClient(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start starts a program whose code has a version.
func start(t *testing.T, e *testenv.Env, version string) *program {
	t.Helper()
	p := &program{wire: testenv.Wire{Limit: -1}, version: version, scope: e.Namespace(t), events: make(chan event, 100), raw: e.Client}
	config := rest.CopyConfig(e.Config)
	config.Wrap(p.wire.Wrap)
	web, scheme := httpClient(t, config), newScheme(t)
	inner, err := apiutil.NewDynamicRESTMapper(config, web)
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(Options{Config: config, HTTPClient: web, Scheme: scheme, Registry: newMachines(), Log: testr.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	mapper := b.Mapper(inner)
	c, err := cache.New(config, b.Cache(config, cache.Options{
		HTTPClient: web, Scheme: scheme, Mapper: mapper, DefaultNamespaces: map[string]cache.Config{p.scope: {}},
		DefaultTransform: cache.TransformStripManagedFields(), NewInformer: p.newInformer,
	}))
	if err != nil {
		t.Fatal(err)
	}
	options := client.Options{HTTPClient: web, Scheme: scheme, Mapper: mapper}
	live, err := client.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	options.Cache = &client.CacheOptions{Reader: c, Unstructured: true}
	cached, err := client.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	p.boundary, p.client, p.live = b, b.CachedClient(cached), b.Client(live)
	p.watch(t, c)
	return p
}

// newInformer keeps what the informer of typed Machines lists.
func (p *program) newInformer(
	lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	if isTyped(obj) {
		p.lister = toolscache.ToListerWatcherWithContext(lw)
	}
	return toolscache.NewSharedIndexInformer(lw, obj, resync, indexers)
}

// watch starts the cache.
func (p *program) watch(t *testing.T, c cache.Cache) {
	t.Helper()
	if err := c.IndexField(t.Context(), p.new(""), "provider", func(o client.Object) []string { return []string{p.provider(o)} }); err != nil {
		t.Fatal(err)
	}
	informer, err := c.GetInformer(t.Context(), p.new(""))
	if err != nil {
		t.Fatal(err)
	}
	send := func(change string, obj any) {
		if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = last.Obj
		}
		p.events <- event{change: change, obj: obj.(client.Object)}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { send("add", o) }, UpdateFunc: func(_, o any) { send("update", o) }, DeleteFunc: func(o any) { send("delete", o) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache did not sync")
	}
}

// new returns a Machine in the version of the code.
func (p *program) new(name string) client.Object {
	metadata := metav1.ObjectMeta{Namespace: p.scope, Name: name, Labels: map[string]string{"a": "b"}, Finalizers: []string{"test/finalizer"}}
	if p.version == newer {
		return &clusterv1.Machine{ObjectMeta: metadata, Spec: clusterv1.MachineSpec{
			ClusterName: "c", Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "InMemoryMachine", Name: "m"},
		}}
	}
	return &clusterv1beta1.Machine{ObjectMeta: metadata, Spec: clusterv1beta1.MachineSpec{
		ClusterName: "c", Version: ptr.To("v1.36.3"), Bootstrap: clusterv1beta1.Bootstrap{DataSecretName: ptr.To("data")},
		InfrastructureRef: corev1.ObjectReference{
			APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: "InMemoryMachine", Name: "m", Namespace: p.scope,
		},
	}}
}

func (p *program) list() client.ObjectList {
	if p.version == newer {
		return &clusterv1.MachineList{}
	}
	return &clusterv1beta1.MachineList{}
}

// provider returns the provider ID of a Machine.
func (*program) provider(o client.Object) string {
	if m, ok := o.(*clusterv1.Machine); ok {
		return m.Spec.ProviderID
	}
	return ptr.Deref(o.(*clusterv1beta1.Machine).Spec.ProviderID, "")
}

func (*program) setProvider(o client.Object, id string) {
	if m, ok := o.(*clusterv1.Machine); ok {
		m.Spec.ProviderID = id
		return
	}
	o.(*clusterv1beta1.Machine).Spec.ProviderID = &id
}

// setReady sets a condition that both versions have.
func (*program) setReady(o client.Object) {
	since := metav1.Unix(1700000000, 0)
	if m, ok := o.(*clusterv1.Machine); ok {
		m.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{
			Conditions: clusterv1.Conditions{{Type: "Ready", Status: corev1.ConditionTrue, LastTransitionTime: since}},
		}}
		return
	}
	o.(*clusterv1beta1.Machine).Status.Conditions = clusterv1beta1.Conditions{{Type: "Ready", Status: corev1.ConditionTrue, LastTransitionTime: since}}
}

// stored returns an object as it is stored.
func (p *program) stored(t *testing.T, version, name string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(machineKind().WithVersion(version))
	if err := p.raw.Get(t.Context(), client.ObjectKey{Namespace: p.scope, Name: name}, u); err != nil {
		t.Fatal(err)
	}
	return u
}

// lifecycle does what controllers do with an object.
func (p *program) lifecycle(t *testing.T, stored string) {
	t.Helper()
	m := p.new("m")
	if err := p.client.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	p.expectEvent(t, "add", m)
	if m.GetUID() == "" || !m.GetObjectKind().GroupVersionKind().Empty() {
		t.Errorf("created %s as %s", m.GetUID(), m.GetObjectKind().GroupVersionKind())
	}
	p.patches(t, m, stored)
	p.setProvider(m, "b")
	if err := p.client.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	p.expectEvent(t, "update", m)
	p.reads(t, m)
	for _, entry := range p.stored(t, stored, "m").GetManagedFields() {
		if !strings.HasSuffix(entry.APIVersion, "/"+stored) {
			t.Errorf("field manager %s wrote version %s, want %s alone", entry.Manager, entry.APIVersion, stored)
		}
	}
	if err := p.client.Delete(t.Context(), m, client.Preconditions{UID: ptr.To(m.GetUID())}); err != nil {
		t.Fatal(err)
	}
	p.take(t, "update")
	before := m.DeepCopyObject().(client.Object)
	m.SetFinalizers(nil)
	if err := p.client.Patch(t.Context(), m, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	p.take(t, "delete")
	if err := p.live.Get(t.Context(), client.ObjectKeyFromObject(m), p.new("")); !apierrors.IsNotFound(err) {
		t.Errorf("after deletion: %v", err)
	}
}

// patches patches status, metadata and spec, each alone.
func (p *program) patches(t *testing.T, m client.Object, stored string) {
	t.Helper()
	patch := func(what string, change func(), send func(before client.Object) error) {
		t.Helper()
		was, before := p.stored(t, stored, "m"), m.DeepCopyObject().(client.Object)
		change()
		if err := send(before); err != nil {
			t.Fatal(err)
		}
		p.expectEvent(t, "update", m)
		for name, value := range p.stored(t, stored, "m").Object {
			if name != what && name != "metadata" && !cmp.Equal(was.Object[name], value) {
				t.Errorf("the patch of %s changed %s from %v to %v", what, name, was.Object[name], value)
			}
		}
	}
	patch("status", func() { p.setReady(m) }, func(before client.Object) error {
		return p.client.Status().Patch(t.Context(), m, MergeFrom(before, client.MergeFromWithOptimisticLock{}))
	})
	patch("metadata", func() { m.SetLabels(map[string]string{"x": "y"}) }, func(before client.Object) error {
		return p.client.Patch(t.Context(), m, client.MergeFrom(before))
	})
	patch("spec", func() { p.setProvider(m, "a") }, func(before client.Object) error {
		return p.client.Patch(t.Context(), m, MergeFrom(before))
	})
	conditions, _, _ := unstructured.NestedSlice(p.stored(t, stored, "m").Object, map[string][]string{
		older: {"status", "conditions"}, newer: {"status", "deprecated", "v1beta1", "conditions"},
	}[stored]...)
	if len(conditions) != 1 {
		t.Errorf("stored conditions: %v", conditions)
	}
}

// reads reads a Machine in all ways.
func (p *program) reads(t *testing.T, m client.Object) {
	t.Helper()
	// API servers that cannot send the first objects as events get lists instead.
	for selector, want := range map[string]int{"x=y": 1, "x=z": 0} {
		list, err := p.lister.ListWithContext(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if reflect.TypeOf(list) != reflect.TypeOf(p.list()) || err != nil || meta.LenList(list) != want {
			t.Errorf("the informer lists %v, %v of %s, want %d", list, err, selector, want)
		}
	}
	key := client.ObjectKeyFromObject(m)
	for source, r := range map[string]client.Reader{"cache": p.client, "API server": p.live} {
		got := p.new("")
		if err := r.Get(t.Context(), key, got); err != nil || got.GetResourceVersion() != m.GetResourceVersion() || p.provider(got) != "b" {
			t.Errorf("%s: got %v, %v", source, got, err)
		}
		list, options := p.list(), []client.ListOption{client.InNamespace(p.scope), client.MatchingLabels{"x": "y"}}
		if source == "cache" {
			options = append(options, client.MatchingFields{"provider": "b"})
		}
		if err := r.List(t.Context(), list, options...); err != nil || meta.LenList(list) != 1 {
			t.Errorf("%s: listed %v, %v", source, list, err)
		}
		u, metadata := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
		for _, o := range []client.Object{u, metadata} {
			o.GetObjectKind().SetGroupVersionKind(machineKind().WithVersion(p.version))
			testenv.Eventually(t, "the object in the "+source, func() error {
				if err := r.Get(t.Context(), key, o); err != nil || o.GetResourceVersion() != m.GetResourceVersion() {
					return fmt.Errorf("got %v, %w", o, err)
				}
				return nil
			})
			if kind := o.GetObjectKind().GroupVersionKind(); kind.Version != p.version {
				t.Errorf("%s: got %T in %s", source, o, kind)
			}
		}
		if id, _, _ := unstructured.NestedString(u.Object, "spec", "providerID"); id != "b" {
			t.Errorf("%s: got %v", source, u.Object)
		}
	}
}

// take waits for the next event, until the tests time out.
func (p *program) take(t *testing.T, change string) client.Object {
	t.Helper()
	got := <-p.events
	if got.change != change {
		t.Fatalf("got event %s of %v, want %s", got.change, got.obj, change)
	}
	return got.obj
}

// expectEvent waits for an event with an object as the last response had it.
func (p *program) expectEvent(t *testing.T, change string, want client.Object) {
	t.Helper()
	got := p.take(t, change)
	want = want.DeepCopyObject().(client.Object)
	want.SetManagedFields(nil)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event %s differs from the response (-response +event):\n%s", change, diff)
	}
}

// expectRequests expects all requests to be in the stored version, and in the namespace.
func (p *program) expectRequests(t *testing.T, stored string) {
	t.Helper()
	for _, r := range p.wire.Log() {
		if !strings.Contains(r, "/apis/cluster.x-k8s.io/") || !strings.Contains(r, "/machines") {
			continue
		}
		if !strings.Contains(r, "/"+stored+"/namespaces/"+p.scope+"/machines") {
			t.Errorf("request %s, want version %s", r, stored)
		}
	}
}
