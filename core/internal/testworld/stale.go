package testworld

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Stale is a client whose reads come from a cache that is as old as a test wants. Kinds that are not frozen are read from
// the API server, and writes always go there.
type Stale struct {
	client.Client

	t         *testing.T
	namespace string

	mu     sync.Mutex
	frozen map[reflect.Type]map[types.NamespacedName]client.Object
	cache  client.Client // of the frozen kinds
}

// NewStale is a client of an API server, for one namespace. Nothing is frozen yet.
func NewStale(t *testing.T, live client.Client, namespace string) *Stale {
	t.Helper()
	return &Stale{Client: live, t: t, namespace: namespace, frozen: map[reflect.Type]map[types.NamespacedName]client.Object{}}
}

// Freeze lets the cache show the objects of a kind as they are now from now on. list is an empty list of the kind.
func (s *Stale) Freeze(list client.ObjectList) {
	s.t.Helper()
	if err := s.Client.List(s.t.Context(), list, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	objects := map[types.NamespacedName]client.Object{}
	_ = meta.EachListItem(list, func(o runtime.Object) error { // the function never fails
		obj := o.DeepCopyObject().(client.Object)
		objects[client.ObjectKeyFromObject(obj)] = obj
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen[itemOf(list)] = objects
	s.rebuild()
}

// Show puts a version of an object of a frozen kind into the cache.
func (s *Stale) Show(obj client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen[reflect.TypeOf(obj)][client.ObjectKeyFromObject(obj)] = obj.DeepCopyObject().(client.Object)
	s.rebuild()
}

// Hide takes an object of a frozen kind out of the cache.
func (s *Stale) Hide(obj client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.frozen[reflect.TypeOf(obj)], client.ObjectKeyFromObject(obj))
	s.rebuild()
}

// Thaw makes the cache current again.
func (s *Stale) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.frozen)
}

func (s *Stale) rebuild() {
	b := fake.NewClientBuilder().WithScheme(s.Scheme())
	for _, objects := range s.frozen {
		for _, obj := range objects {
			b.WithObjects(obj.DeepCopyObject().(client.Object))
		}
	}
	s.cache = b.Build()
}

func (s *Stale) reader(kind reflect.Type) client.Reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, frozen := s.frozen[kind]; frozen {
		return s.cache
	}
	return s.Client
}

// Get reads an object as the cache shows it.
func (s *Stale) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return s.reader(reflect.TypeOf(obj)).Get(ctx, key, obj, opts...)
}

// List lists objects as the cache shows them.
func (s *Stale) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return s.reader(itemOf(list)).List(ctx, list, opts...)
}

// itemOf is the type of a list's objects; nil when the list has no field of that name.
func itemOf(list client.ObjectList) reflect.Type {
	items, ok := reflect.TypeOf(list).Elem().FieldByName("Items")
	if !ok {
		return nil
	}
	return reflect.PointerTo(items.Type.Elem())
}
