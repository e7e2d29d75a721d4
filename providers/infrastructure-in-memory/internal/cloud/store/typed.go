package store

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// This file provides access to a group by Go types, like a client: kind and resource derive from the type.

// Kind is a pointer to a Go type of a Kubernetes built-in kind.
type Kind[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// Objects are the objects of a workload cluster, such as those of a Store.
type Objects interface {
	Get(key Key) (*Object, error)
	Create(r Resource, u *unstructured.Unstructured, o WriteOptions) (*Object, error)
	Update(key Key, o WriteOptions, change func(current *Object) (*unstructured.Unstructured, error)) (*Object, error)
	Delete(key Key, o DeleteOptions) (*Object, bool, error)
}

// Get returns an object by its Go type, as in Get[corev1.Node](group, "", "worker-1"), or NotFound.
func Get[T any, P Kind[T]](s Objects, namespace, name string) (*T, error) {
	into := new(T)
	resource, _, err := resourceOf(P(into))
	if err != nil {
		return nil, err
	}
	o, err := s.Get(Key{Resource: resource, Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	return into, o.Into(into)
}

// Ensure creates an object unless it exists, and reports whether it did. An existing object is not changed.
func Ensure[T any, P Kind[T]](s Objects, object P) (created bool, err error) {
	resource, gvk, err := resourceOf(object)
	if err != nil {
		return false, err
	}
	u, err := toUnstructured(object, gvk)
	if err != nil {
		return false, err
	}
	_, err = s.Create(resource, u, WriteOptions{})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, err
}

// Modify updates an object by its Go type. change may be called more than once; its error aborts the update. Nothing is
// written if nothing changes.
func Modify[T any, P Kind[T]](s Objects, namespace, name string, change func(P) error) error {
	resource, gvk, err := resourceOf(P(new(T)))
	if err != nil {
		return err
	}
	_, err = s.Update(Key{Resource: resource, Namespace: namespace, Name: name}, WriteOptions{},
		func(current *Object) (*unstructured.Unstructured, error) {
			typed := P(new(T))
			if err := current.Into(typed); err != nil {
				return nil, err
			}
			if err := change(typed); err != nil {
				return nil, err
			}
			return toUnstructured(typed, gvk)
		})
	return err
}

// Remove deletes an object by its Go type, ignoring not found.
func Remove[T any, P Kind[T]](s Objects, namespace, name string) error {
	resource, _, err := resourceOf(P(new(T)))
	if err != nil {
		return err
	}
	_, _, err = s.Delete(Key{Resource: resource, Namespace: namespace, Name: name}, DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func resourceOf(object runtime.Object) (Resource, schema.GroupVersionKind, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return Resource{}, schema.GroupVersionKind{}, fmt.Errorf("find the resource of %T: %w", object, err)
	}
	plural, _ := meta.UnsafeGuessKindToResource(kinds[0])
	return plural.GroupResource(), kinds[0], nil
}

func toUnstructured(object runtime.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", object, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	if typed, ok := object.(metav1.Object); ok {
		if created := typed.GetCreationTimestamp(); !created.IsZero() {
			u.SetCreationTimestamp(created)
		}
	}
	return u, nil
}
