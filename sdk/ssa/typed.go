package ssa

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Typed converts typed objects for an Applier: the live object, nil if it does not exist, and the desired one, without what
// the API server and controllers set.
func Typed[T any, P interface {
	*T
	client.Object
}](live, desired P, kind runtimeschema.GroupVersionKind) (current, configuration *unstructured.Unstructured, err error) {
	if configuration, err = fromTyped(desired, kind); err != nil {
		return nil, nil, err
	}
	unstructured.RemoveNestedField(configuration.Object, "status")
	unstructured.RemoveNestedField(configuration.Object, "metadata", "creationTimestamp")
	if live == nil {
		return nil, configuration, nil
	}
	current, err = fromTyped(live, kind)
	return current, configuration, err
}

func fromTyped(object client.Object, kind runtimeschema.GroupVersionKind) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("converting %s %s: %w", kind.Kind, object.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	if created := object.GetCreationTimestamp(); created.IsZero() {
		unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	}
	return u, nil
}
