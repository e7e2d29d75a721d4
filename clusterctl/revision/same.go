package revision

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Difference returns the first field of an object, as it is in a file, that has another value in the management cluster; empty if there is
// none. stored is what the management cluster would make of the file now, for example a duration in another notation. Fields that the file
// does not have are not compared: defaults may have changed since the object was created.
func Difference(file, stored, live *unstructured.Unstructured) string {
	for _, field := range []string{"metadata.labels", "metadata.annotations"} {
		name := field[len("metadata."):]
		f, _, _ := unstructured.NestedMap(file.Object, "metadata", name)
		s, _, _ := unstructured.NestedMap(stored.Object, "metadata", name)
		l, _, _ := unstructured.NestedMap(live.Object, "metadata", name)
		if path := differs(field, f, s, l); path != "" {
			return path
		}
	}
	for _, field := range slices.Sorted(maps.Keys(file.Object)) {
		if field == "metadata" || field == "apiVersion" || field == "kind" {
			continue
		}
		if path := differs(field, file.Object[field], stored.Object[field], live.Object[field]); path != "" {
			return path
		}
	}
	return ""
}

func differs(path string, file, stored, live any) string {
	switch s := stored.(type) {
	case map[string]any:
		f, ok := file.(map[string]any)
		l, isMap := live.(map[string]any)
		if !ok || !isMap {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(f)) {
			if found := differs(path+"."+key, f[key], s[key], l[key]); found != "" {
				return found
			}
		}
		return ""
	case []any:
		f, ok := file.([]any)
		l, isList := live.([]any)
		if !ok || !isList || len(f) != len(s) || len(s) != len(l) {
			break
		}
		for i := range s {
			if found := differs(fmt.Sprintf("%s[%d]", path, i), f[i], s[i], l[i]); found != "" {
				return found
			}
		}
		return ""
	}
	if reflect.DeepEqual(stored, live) {
		return ""
	}
	return path
}
