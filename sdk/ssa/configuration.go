package ssa

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// configuration returns the apply configuration of desired: a copy without what an apply cannot set or the API server would
// remove. Otherwise these would always look like changes.
func configuration(s *kindSchema, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := map[string]any{}
	for name, value := range desired.Object {
		if name == "metadata" || (name == "status" && s.statusApart) {
			continue
		}
		var field *schema.Structural
		if holdsNull(value) { // The schema is only needed for nulls, and is expensive to search.
			field = child(s.structural, name)
		}
		kept, err := kept(value, field)
		if err != nil {
			return nil, fmt.Errorf("field .%s%w", name, err)
		}
		if value != nil || kept != nil {
			out[name] = kept
		}
	}
	metadata, _ := desired.Object["metadata"].(map[string]any)
	keptMetadata := map[string]any{}
	for _, name := range []string{"name", "namespace", "labels", "annotations", "ownerReferences", "finalizers"} {
		value, err := kept(metadata[name], nil)
		if err != nil {
			return nil, fmt.Errorf("field .metadata.%s%w", name, err)
		}
		if !empty(value) {
			keptMetadata[name] = value
		}
	}
	if s.embedding {
		if err := objectmeta.Coerce(nil, out, s.structural, false, false); err != nil {
			return nil, err
		}
	}
	out["metadata"] = keptMetadata
	return &unstructured.Unstructured{Object: out}, nil
}

// kept copies value without the nulls that the schema does not allow, with the number types that objects from an API server
// have. An error starts with the path in value.
func kept(value any, s *schema.Structural) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			field := child(s, name)
			if item == nil && field != nil && !field.Nullable {
				continue
			}
			copied, err := kept(item, field)
			if err != nil {
				return nil, fmt.Errorf(".%s%w", name, err)
			}
			out[name] = copied
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			copied, err := kept(item, items(s))
			if err != nil {
				return nil, fmt.Errorf("[%d]%w", i, err)
			}
			out[i] = copied
		}
		return out, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case nil, bool, string, int64, float64:
		return v, nil
	default:
		return nil, fmt.Errorf(" is a %T, which is not a JSON type", value)
	}
}

func holdsNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, item := range v {
			if holdsNull(item) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, holdsNull)
	}
	return false
}

func child(s *schema.Structural, name string) *schema.Structural {
	if s == nil {
		return nil
	}
	if property, ok := s.Properties[name]; ok {
		return &property
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

func items(s *schema.Structural) *schema.Structural {
	if s == nil {
		return nil
	}
	return s.Items
}

func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

// leaveZero removes those fields of paths from config that are zero, unless the manager owns them in the live object,
// which means that no other client has set them. It reports whether any zero field was kept.
func leaveZero(config *unstructured.Unstructured, paths [][]string, owned *fieldpath.Set) (stayed bool) {
	for _, path := range paths {
		value, found, err := unstructured.NestedFieldNoCopy(config.Object, path...)
		if err != nil || !found || !zero(value) {
			continue
		}
		if owned.Has(fieldPath(path)) {
			stayed = true
			continue
		}
		remove(config.Object, path)
	}
	return stayed
}

// keepReferences replaces the references at paths by those of live that have all their fields, with the same values.
func keepReferences(config, live *unstructured.Unstructured, paths [][]string) {
	for _, path := range paths {
		wanted, found, err := unstructured.NestedMap(config.Object, path...)
		is, exists, errLive := unstructured.NestedMap(live.Object, path...)
		if err != nil || errLive != nil || !found || !exists {
			continue
		}
		if overlaid := maps.Clone(is); len(wanted) > 0 {
			maps.Copy(overlaid, wanted)
			if reflect.DeepEqual(overlaid, is) {
				_ = unstructured.SetNestedMap(config.Object, is, path...) // It was found above.
			}
		}
	}
}

// remove deletes the field at path and all its parents that are empty then.
func remove(fields map[string]any, path []string) {
	for ; len(path) > 0; path = path[:len(path)-1] {
		parent, _, _ := unstructured.NestedFieldNoCopy(fields, path[:len(path)-1]...)
		siblings, ok := parent.(map[string]any)
		if !ok {
			return
		}
		delete(siblings, path[len(path)-1])
		if len(siblings) > 0 {
			return
		}
	}
}

func zero(value any) bool {
	switch v := value.(type) {
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	default:
		return empty(value)
	}
}

func fieldPath(names []string) fieldpath.Path {
	path := make(fieldpath.Path, len(names))
	for i := range names {
		path[i].FieldName = &names[i]
	}
	return path
}

// compared returns the parts of a live object that are compared. It is a shallow copy.
func compared(s *kindSchema, live *unstructured.Unstructured) map[string]any {
	out := maps.Clone(live.Object)
	if s.statusApart {
		delete(out, "status")
	}
	if metadata, ok := out["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		out["metadata"] = metadata
	}
	return out
}
