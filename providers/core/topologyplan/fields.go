package topologyplan

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
)

// changedFields returns the paths of the fields that differ, sorted, except for what the API server and status report.
func changedFields(before, after *unstructured.Unstructured) []string {
	var changed []string
	compare("", contentOf(before), contentOf(after), &changed)
	slices.Sort(changed)
	return changed
}

// contentOf returns the content of an object that users and controllers set.
func contentOf(u *unstructured.Unstructured) map[string]any {
	out := maps.Clone(u.Object)
	delete(out, "status")
	if metadata, ok := out["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, name := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
			delete(metadata, name)
		}
		out["metadata"] = metadata
	}
	return out
}

func compare(path string, before, after any, changed *[]string) {
	a, aOK := before.(map[string]any)
	b, bOK := after.(map[string]any)
	if !aOK || !bOK {
		if !equality.Semantic.DeepEqual(before, after) {
			*changed = append(*changed, path)
		}
		return
	}
	for name := range sets.KeySet(a).Union(sets.KeySet(b)) {
		below := name
		if path != "" {
			below = path + "." + name
		}
		compare(below, a[name], b[name], changed)
	}
}
