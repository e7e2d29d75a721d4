package objectcache

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// observed is a cache that records the field selector of the last list.
type observed struct {
	cache.Cache
	mu       sync.Mutex
	selector string
}

func (c *observed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	c.mu.Lock()
	c.selector = ""
	if o.FieldSelector != nil {
		c.selector = o.FieldSelector.String()
	}
	c.mu.Unlock()
	return c.Cache.List(ctx, list, opts...)
}

// world has a running cache, and its namespaces one and two have ConfigMaps.
type world struct {
	*observed
	indexed  cache.Cache
	one, two string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	e := server.Start(t)
	inner, err := cache.New(e.Config, cache.Options{Scheme: e.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{observed: &observed{Cache: inner}, one: e.Namespace(t), two: e.Namespace(t)}
	w.indexed = Indexed(w.observed, e.Client.Scheme(), "cluster", "set")
	for name, of := range map[string]map[string]string{
		"a": {"cluster": "c-1", "set": "s-1"}, "b": {"cluster": "c-1", "set": "s-2"}, "c": {"cluster": "c-2", "set": "s-1"}, "d": nil,
	} {
		for _, namespace := range []string{w.one, w.two} {
			if err := e.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: of}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = inner.Start(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	if !inner.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache did not sync")
	}
	return w
}

// listed returns the objects in a list.
func (w *world) listed(t *testing.T, from client.Reader, list client.ObjectList, opts ...client.ListOption) sets.Set[string] {
	t.Helper()
	if err := from.List(t.Context(), list, opts...); err != nil {
		t.Fatal(err)
	}
	out := sets.New[string]()
	err := meta.EachListItem(list, func(o runtime.Object) error {
		obj, err := meta.Accessor(o)
		if err == nil && (obj.GetNamespace() == w.one || obj.GetNamespace() == w.two) {
			out.Insert(client.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetName()}.String())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestList(t *testing.T) {
	w := newWorld(t)
	selector := func(s string) client.ListOption {
		parsed, err := labels.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return client.MatchingLabelsSelector{Selector: parsed}
	}
	in := client.InNamespace(w.one)
	for _, test := range []struct {
		reason string
		opts   []client.ListOption
		index  string
		count  int
	}{
		{"one value of an indexed key", []client.ListOption{in, client.MatchingLabels{"cluster": "c-1"}}, "metadata.labels/cluster=c-1", 2},
		{"all namespaces", []client.ListOption{client.MatchingLabels{"cluster": "c-1"}}, "metadata.labels/cluster=c-1", 4},
		{"the first key applies", []client.ListOption{in, client.MatchingLabels{"set": "s-1", "cluster": "c-1"}}, "metadata.labels/cluster=c-1", 1},
		{"another key", []client.ListOption{in, client.MatchingLabels{"set": "s-1"}}, "metadata.labels/set=s-1", 2},
		{"nothing has the value", []client.ListOption{in, client.MatchingLabels{"cluster": "c-9"}}, "metadata.labels/cluster=c-9", 0},
		{"one of one value", []client.ListOption{in, selector("cluster in (c-2)")}, "metadata.labels/cluster=c-2", 1},
		{"one of two values", []client.ListOption{in, selector("cluster in (c-1, c-2)")}, "", 3},
		{"any value", []client.ListOption{in, client.HasLabels{"cluster"}}, "", 3},
		{"not a value", []client.ListOption{in, selector("cluster!=c-1")}, "", 2},
		{"no selector", []client.ListOption{in}, "", 4},
		{"nothing", []client.ListOption{in, client.MatchingLabelsSelector{Selector: labels.Nothing()}}, "", 0},
	} {
		for _, list := range []func() client.ObjectList{typed, untyped, metadata} {
			want := w.listed(t, w.Cache, list(), test.opts...)
			got := w.listed(t, w.indexed, list(), test.opts...)
			if diff := cmp.Diff(want, got); diff != "" || len(got) != test.count {
				t.Errorf("%s: %T: %d objects, want %d; by index and without (-without +by index): %s", test.reason, list(), len(got), test.count, diff)
			}
			if w.selector != test.index {
				t.Errorf("%s: %T: index %q, want %q", test.reason, list(), w.selector, test.index)
			}
		}
	}
}

// A list by field is the caller's own.
func TestListByField(t *testing.T) {
	w := newWorld(t)
	byName := func(obj client.Object) []string { return []string{obj.GetName()} }
	if err := w.indexed.IndexField(t.Context(), &corev1.ConfigMap{}, "name", byName); err != nil {
		t.Fatal(err)
	}
	got := w.listed(t, w.indexed, typed(), client.MatchingLabels{"cluster": "c-1"},
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("name", "b")})
	if len(got) != 2 || w.selector != "name=b" {
		t.Errorf("got %v by %q", got, w.selector)
	}
}

// The first lists of a kind may be concurrent.
func TestConcurrentLists(t *testing.T) {
	w := newWorld(t)
	var lists sync.WaitGroup
	for range 20 {
		lists.Go(func() {
			if err := w.indexed.List(t.Context(), typed(), client.MatchingLabels{"cluster": "c-1"}); err != nil {
				t.Error(err)
			}
		})
	}
	lists.Wait()
}

func typed() client.ObjectList { return &corev1.ConfigMapList{} }

func untyped() client.ObjectList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	return list
}

func metadata() client.ObjectList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	return list
}
