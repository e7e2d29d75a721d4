package manifest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Key identifies an object, regardless of the version of its kind.
type Key struct {
	schema.GroupKind
	Namespace, Name string
}

// KeyOf returns the Key of an object.
func KeyOf(o *unstructured.Unstructured) Key {
	return Key{GroupKind: o.GroupVersionKind().GroupKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Identity returns an object with only the kind, namespace and name of o.
func Identity(o *unstructured.Unstructured) *unstructured.Unstructured {
	id := &unstructured.Unstructured{}
	id.SetGroupVersionKind(o.GroupVersionKind())
	id.SetNamespace(o.GetNamespace())
	id.SetName(o.GetName())
	return id
}
