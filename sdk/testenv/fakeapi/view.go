package fakeapi

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// View reads the objects of an API server, except for those that a test has made different: a stale cache. It is safe for concurrent
// use.
type View struct {
	t         testing.TB
	live      client.Reader
	scheme    *runtime.Scheme
	namespace string
	indexes   []step.Index

	mu sync.Mutex
	// frozen are the kinds that have only the objects of shown.
	frozen map[schema.GroupVersionKind]bool
	// shown are the objects that differ; nil if they are missing.
	shown map[schema.GroupVersionKind]map[types.NamespacedName]client.Object
}

// Freeze makes the view keep the current objects of kinds from now on; lists are empty lists of those kinds.
func (v *View) Freeze(lists ...client.ObjectList) {
	v.t.Helper()
	for _, list := range lists {
		kind := v.kind(list)
		objects, err := v.objects(v.t.Context(), v.live, list)
		if err != nil {
			v.t.Fatal(err)
		}
		v.mu.Lock()
		v.frozen[kind], v.shown[kind] = true, objects
		v.mu.Unlock()
	}
}

// FreezeObjects makes the view keep the current versions of objects; those that do not exist stay missing.
func (v *View) FreezeObjects(objects ...client.Object) {
	v.t.Helper()
	for _, obj := range objects {
		current := copyOf(obj)
		err := v.live.Get(v.t.Context(), client.ObjectKeyFromObject(obj), current)
		switch {
		case err == nil:
			v.Show(current)
		case apierrors.IsNotFound(err):
			v.Hide(obj)
		default:
			v.t.Fatal(err)
		}
	}
}

// Show makes the view have these versions of objects. Changes that the test makes to them afterwards are visible.
func (v *View) Show(objects ...client.Object) {
	v.t.Helper()
	for _, obj := range objects {
		v.set(obj, obj)
	}
}

// Hide makes the view lack objects.
func (v *View) Hide(objects ...client.Object) {
	v.t.Helper()
	for _, obj := range objects {
		v.set(obj, nil)
	}
}

// Thaw brings the view up to date.
func (v *View) Thaw() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.frozen = map[schema.GroupVersionKind]bool{}
	v.shown = map[schema.GroupVersionKind]map[types.NamespacedName]client.Object{}
}

func (v *View) set(obj, to client.Object) {
	v.t.Helper()
	kind := v.kind(obj)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shown[kind] == nil {
		v.shown[kind] = map[types.NamespacedName]client.Object{}
	}
	v.shown[kind][client.ObjectKeyFromObject(obj)] = to
}

func (v *View) kind(obj runtime.Object) schema.GroupVersionKind {
	v.t.Helper()
	kind, err := kindOf(obj, v.scheme)
	if err != nil {
		v.t.Fatal(err)
	}
	return kind
}

// Get implements client.Reader.
func (v *View) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	kind, err := kindOf(obj, v.scheme)
	if err != nil {
		return err
	}
	v.mu.Lock()
	shown, differs := v.shown[kind][key]
	frozen := v.frozen[kind]
	v.mu.Unlock()
	switch {
	case shown != nil:
		return convert(shown, obj, kind)
	case differs || frozen:
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		return apierrors.NewNotFound(resource.GroupResource(), key.Name)
	}
	return v.live.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (v *View) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	kind, err := kindOf(list, v.scheme)
	if err != nil {
		return err
	}
	v.mu.Lock()
	shown, frozen := maps.Clone(v.shown[kind]), v.frozen[kind]
	v.mu.Unlock()
	if !frozen && len(shown) == 0 {
		return v.live.List(ctx, list, opts...)
	}
	all := map[types.NamespacedName]client.Object{}
	if !frozen {
		if all, err = v.objects(ctx, v.live, list); err != nil {
			return err
		}
	}
	maps.Copy(all, shown)
	// The fake applies selectors and indexes. The converter is faster than the default.
	b := fake.NewClientBuilder().WithScheme(v.scheme).WithTypeConverters(managedfields.NewDeducedTypeConverter())
	for _, obj := range all {
		if obj == nil {
			continue
		}
		if obj, err = v.typed(obj, kind); err != nil {
			return err
		}
		b.WithObjects(obj)
	}
	for _, i := range v.indexes {
		b.WithIndex(i.Object, i.Field, i.Values)
	}
	return b.Build().List(ctx, list, opts...)
}

// typed returns a copy of an object of a kind: the fake does not accept metadata alone, but lists it.
func (v *View) typed(obj client.Object, kind schema.GroupVersionKind) (client.Object, error) {
	if _, partial := obj.(*metav1.PartialObjectMetadata); !partial {
		return copyOf(obj), nil
	}
	whole, err := v.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	return whole.(client.Object), convert(obj, whole.(client.Object), kind)
}

// objects returns the objects of the kind of list, which is not changed.
func (v *View) objects(ctx context.Context, from client.Reader, list client.ObjectList) (map[types.NamespacedName]client.Object, error) {
	all := list.DeepCopyObject().(client.ObjectList)
	if err := from.List(ctx, all, client.InNamespace(v.namespace)); err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(all)
	if err != nil {
		return nil, err
	}
	out := map[types.NamespacedName]client.Object{}
	for _, item := range items {
		obj := item.(client.Object)
		out[client.ObjectKeyFromObject(obj)] = obj
	}
	return out, nil
}

// convert copies from to an object that may have another type of the same kind.
func convert(from, to client.Object, kind schema.GroupVersionKind) error {
	if reflect.TypeOf(from) == reflect.TypeOf(to) {
		reflect.ValueOf(to).Elem().Set(reflect.ValueOf(copyOf(from)).Elem())
		return nil
	}
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return err
	}
	to.GetObjectKind().SetGroupVersionKind(kind)
	return nil
}
