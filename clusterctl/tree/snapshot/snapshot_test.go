package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

var (
	cluster     = types.NamespacedName{Namespace: "ns", Name: "c1"}
	toyMachine  = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "ToyMachine"}
	toyCluster  = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "ToyCluster"}
	infraRef    = []string{"spec", "infrastructureRef"}
	labeled     = map[string]string{clusterv1.ClusterNameLabel: "c1"}
	servedKinds = []schema.GroupVersionKind{tree.ClusterKind, tree.MachineKind, tree.MachineSetKind, tree.MachineDeploymentKind, toyMachine, toyCluster}
)

func object(kind schema.GroupVersionKind, name string, labels map[string]string, infra string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetLabels(labels)
	if infra != "" {
		ref := map[string]any{"apiVersion": toyMachine.GroupVersion().String(), "kind": infra, "name": name}
		if err := unstructured.SetNestedMap(u.Object, ref, infraRef...); err != nil {
			panic(err)
		}
	}
	return u
}

// server is an API server that knows some kinds, and a record of what it was asked.
type server struct {
	client.WithWatch
	mu       sync.Mutex
	requests []string
}

func newServer(objects ...client.Object) *server {
	s := &server{}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{toyMachine.GroupVersion()})
	scheme := runtime.NewScheme()
	for _, kind := range servedKinds {
		mapper.Add(kind, meta.RESTScopeNamespace)
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	record := func(verb, kind, name string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, strings.TrimSpace(verb+" "+strings.TrimSuffix(kind, "List")+" "+name))
	}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				record("get", o.GetObjectKind().GroupVersionKind().Kind, key.Name)
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				kind := list.GetObjectKind().GroupVersionKind()
				options := (&client.ListOptions{}).ApplyOptions(opts)
				what := ""
				if options.LabelSelector != nil {
					what = options.LabelSelector.String()
				}
				record("list", kind.Kind, what)
				single := kind.GroupVersion().WithKind(strings.TrimSuffix(kind.Kind, "List"))
				if _, err := mapper.RESTMapping(single.GroupKind(), single.Version); err != nil {
					return err
				}
				if err := c.List(ctx, list, &client.ListOptions{Namespace: options.Namespace, LabelSelector: options.LabelSelector}); err != nil {
					return err
				}
				filter(list, options)
				return nil
			},
		}).Build()
	return s
}

// filter does what an API server does with a selector for a name.
func filter(list client.ObjectList, options *client.ListOptions) {
	items, ok := list.(*unstructured.UnstructuredList)
	if !ok || options.FieldSelector == nil {
		return
	}
	name, found := options.FieldSelector.RequiresExactMatch("metadata.name")
	items.Items = slices.DeleteFunc(items.Items, func(u unstructured.Unstructured) bool { return found && u.GetName() != name })
}

func names(objects *tree.Objects) []string {
	var list []string
	for _, u := range objects.All() {
		list = append(list, u.GetKind()+"/"+u.GetName())
	}
	return list
}

func TestReadAsksOncePerKind(t *testing.T) {
	objects := []client.Object{object(tree.ClusterKind, "c1", nil, "ToyCluster"), object(toyCluster, "c1", nil, "")}
	want := []string{"Cluster/c1"}
	var machines, infrastructure []string
	for i := range 100 {
		name := fmt.Sprintf("m%03d", i)
		objects = append(objects, object(tree.MachineKind, name, labeled, "ToyMachine"), object(toyMachine, name, labeled, ""))
		machines, infrastructure = append(machines, "Machine/"+name), append(infrastructure, "ToyMachine/"+name)
	}
	// A Machine of another Cluster is none of ours.
	objects = append(objects, object(tree.MachineKind, "other", map[string]string{clusterv1.ClusterNameLabel: "c2"}, ""))
	s := newServer(objects...)
	got, err := Read(t.Context(), s, cluster, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want = append(append(append(want, machines...), "ToyCluster/c1"), infrastructure...)
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Errorf("objects: -want +got:\n%s", diff)
	}
	slices.Sort(s.requests)
	label := clusterv1.ClusterNameLabel + "=c1"
	wantRequests := []string{
		"get Cluster c1", "get ToyCluster c1", "list Machine " + label, "list MachineDeployment " + label, "list MachinePool " + label,
		"list MachineSet " + label, "list ToyMachine " + label,
	}
	if diff := cmp.Diff(wantRequests, s.requests); diff != "" {
		t.Errorf("The number of requests must not grow with the number of Machines: -want +got:\n%s", diff)
	}
}

func TestReadFindsUnlabeledObjects(t *testing.T) {
	s := newServer(object(tree.ClusterKind, "c1", nil, ""), object(tree.MachineKind, "m1", labeled, "ToyMachine"),
		object(tree.MachineKind, "m2", labeled, "ToyMachine"), object(toyMachine, "m1", nil, ""), object(toyMachine, "m2", nil, ""))
	got, err := Read(t.Context(), s, cluster, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Cluster/c1", "Machine/m1", "Machine/m2", "ToyMachine/m1", "ToyMachine/m2"}, names(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := len(slices.DeleteFunc(s.requests, func(r string) bool { return !strings.HasPrefix(r, "list ToyMachine") })); n != 2 {
		t.Errorf("one more list must do, got %v", s.requests)
	}
}

// TestOtherVersions reads objects whose references have a version that the API server does not serve, in one that it serves.
func TestOtherVersions(t *testing.T) {
	owner, machine := object(tree.ClusterKind, "c1", nil, "ToyCluster"), object(tree.MachineKind, "m1", labeled, "ToyMachine")
	for _, from := range []*unstructured.Unstructured{owner, machine} {
		if err := unstructured.SetNestedField(from.Object, "infrastructure.cluster.x-k8s.io/v1", "spec", "infrastructureRef", "apiVersion"); err != nil {
			t.Fatal(err)
		}
	}
	s := newServer(owner, machine, object(toyCluster, "c1", nil, ""), object(toyMachine, "m1", labeled, ""))
	want := []string{"Cluster/c1", "Machine/m1", "ToyCluster/c1", "ToyMachine/m1"}
	got, err := Read(t.Context(), s, cluster, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Errorf("read: -want +got:\n%s", diff)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	w := Watch(ctx, s, cluster, tree.Options{})
	defer w.Wait()
	defer stop()
	for {
		objects, complete := w.Objects(ctx)
		if complete && cmp.Equal(want, names(objects)) {
			return
		}
		select {
		case <-w.Changed():
		case <-ctx.Done():
			t.Fatalf("watched: %v, want %v: %v", names(objects), want, w.Err())
		}
	}
}

func TestReadOfNothing(t *testing.T) {
	s := newServer()
	got, err := Read(t.Context(), s, cluster, tree.Options{ResourceSets: true})
	if err != nil || got.Cluster(cluster) != nil {
		t.Errorf("A Cluster that does not exist is no error of reading: %v, %v", got, err)
	}
}

func TestWatch(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := newServer(object(tree.ClusterKind, "c1", nil, "ToyCluster"))
	w := Watch(ctx, s, cluster, tree.Options{})
	defer w.Wait()
	defer cancel()
	expect := func(want ...string) {
		t.Helper()
		for {
			objects, complete := w.Objects(ctx)
			if complete && cmp.Equal(want, names(objects)) {
				return
			}
			select {
			case <-ctx.Done():
				t.Fatalf("want %v, got %v (complete: %v): %v", want, names(objects), complete, w.Err())
			case <-w.Changed():
			}
		}
	}
	expect("Cluster/c1")
	machine := object(tree.MachineKind, "m1", labeled, "ToyMachine")
	for _, o := range []client.Object{object(toyCluster, "c1", nil, ""), machine} {
		if err := s.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	expect("Cluster/c1", "Machine/m1", "ToyCluster/c1")
	// The kind of a Machine's infrastructure is only known since there is a Machine.
	if err := s.Create(ctx, object(toyMachine, "m1", labeled, "")); err != nil {
		t.Fatal(err)
	}
	expect("Cluster/c1", "Machine/m1", "ToyCluster/c1", "ToyMachine/m1")
	if err := s.Delete(ctx, machine); err != nil {
		t.Fatal(err)
	}
	expect("Cluster/c1", "ToyCluster/c1", "ToyMachine/m1")
	if w.Err() != nil {
		t.Errorf("want no error, got %v", w.Err())
	}
}

// TestWatchListsTheLatest checks that a Cluster that has just been created is found by an API server whose cache lags behind: it may serve
// any older state if the client does not ask for the latest.
func TestWatchListsTheLatest(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := newServer(object(tree.ClusterKind, "c1", nil, ""))
	s.WithWatch = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if raw := (&client.ListOptions{}).ApplyOptions(opts).Raw; raw.ResourceVersion == "0" {
				return nil // Before the Cluster was created.
			}
			return c.List(ctx, list, opts...)
		},
	})
	w := Watch(ctx, s, cluster, tree.Options{})
	defer w.Wait()
	defer cancel()
	for {
		objects, complete := w.Objects(ctx)
		if complete {
			if objects.Cluster(cluster) == nil {
				t.Error("the Cluster is not found")
			}
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(w.Err())
		case <-w.Changed():
		}
	}
}

func TestWatchTellsErrors(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := newServer()
	s.WithWatch = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: list.GetObjectKind().GroupVersionKind().Kind}, "", nil)
		},
	})
	w := Watch(ctx, s, cluster, tree.Options{})
	defer w.Wait()
	defer cancel()
	select {
	case <-ctx.Done():
		t.Fatal("an error must wake the one who waits")
	case <-w.Changed():
	}
	if err := w.Err(); !apierrors.IsForbidden(err) {
		t.Errorf("want what was refused, got %v", err)
	}
}
