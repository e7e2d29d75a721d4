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

// Stale is a client that simulates a stale cache. Reads of frozen kinds return old objects; all other reads, and all writes, go
// to the API server.
type Stale struct {
	client.Client

	t         *testing.T
	namespace string

	mu     sync.Mutex
	frozen map[reflect.Type]map[types.NamespacedName]client.Object
	cache  client.Client // of the frozen kinds
}

// NewStale returns a client for one namespace of an API server. Nothing is frozen yet.
func NewStale(t *testing.T, live client.Client, namespace string) *Stale {
	t.Helper()
	return &Stale{Client: live, t: t, namespace: namespace, frozen: map[reflect.Type]map[types.NamespacedName]client.Object{}}
}

// Freeze makes the cache return the current objects of a kind from now on; list is an empty list of that kind.
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

// Show adds a version of an object of a frozen kind to the cache.
func (s *Stale) Show(obj client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen[reflect.TypeOf(obj)][client.ObjectKeyFromObject(obj)] = obj.DeepCopyObject().(client.Object)
	s.rebuild()
}

// Hide removes an object of a frozen kind from the cache.
func (s *Stale) Hide(obj client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.frozen[reflect.TypeOf(obj)], client.ObjectKeyFromObject(obj))
	s.rebuild()
}

// Thaw brings the cache up to date again.
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

// Get reads an object from the cache.
func (s *Stale) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return s.reader(reflect.TypeOf(obj)).Get(ctx, key, obj, opts...)
}

// List lists objects from the cache.
func (s *Stale) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return s.reader(itemOf(list)).List(ctx, list, opts...)
}

// itemOf returns the type of a list's items; nil if it has no field Items.
func itemOf(list client.ObjectList) reflect.Type {
	items, ok := reflect.TypeOf(list).Elem().FieldByName("Items")
	if !ok {
		return nil
	}
	return reflect.PointerTo(items.Type.Elem())
}
