package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// desiredUnstructured converts desired objects, without their status: its counters without omitempty would be applied as 0.
func desiredUnstructured(all []runtime.Object) ([]*unstructured.Unstructured, error) {
	out := make([]*unstructured.Unstructured, 0, len(all))
	for _, object := range all {
		u, err := toUnstructured(object)
		if err != nil {
			return nil, err
		}
		delete(u.Object, "status")
		out = append(out, u)
	}
	return out, nil
}

func toUnstructured(object runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("converting a %T: %w", object, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
