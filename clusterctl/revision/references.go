package revision

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reference is a reference of a ClusterClass to a template, in the namespace of the class.
type Reference struct {
	// Path is the field of the reference, such as spec.infrastructure.templateRef.
	Path string
	Kind schema.GroupVersionKind
	Name string

	// field is the reference in the object.
	field map[string]any
}

// String returns the kind and the name of the template.
func (r Reference) String() string { return r.Kind.Kind + " " + r.Name }

// References returns the references of a ClusterClass, of v1beta1 or v1beta2, in a fixed order. Selectors of patches select templates by
// kind, and templates for remediation are in the namespaces of Clusters: both are no references.
func References(class *unstructured.Unstructured) []Reference {
	var list []Reference
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case []any:
			for i, item := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), item)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				switch key {
				case "variables", "patches", "metadata", "healthCheck", "machineHealthCheck":
				case "ref", "templateRef":
					if r, ok := reference(path+"."+key, v[key]); ok {
						list = append(list, r)
					}
				default:
					walk(path+"."+key, v[key])
				}
			}
		}
	}
	walk("spec", class.Object["spec"])
	return list
}

func reference(path string, value any) (Reference, bool) {
	field, _ := value.(map[string]any)
	text := func(key string) string { s, _ := field[key].(string); return s }
	r := Reference{
		Path: path, Kind: schema.FromAPIVersionAndKind(text("apiVersion"), text("kind")), Name: text("name"), field: field,
	}
	return r, r.Kind.Kind != "" && r.Name != ""
}

// namespace returns the namespace that a reference of v1beta1 can have.
func (r Reference) namespace() string { s, _ := r.field["namespace"].(string); return s }
