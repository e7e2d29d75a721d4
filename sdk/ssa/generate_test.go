package ssa

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// generator generates schemas and matching objects, the same ones for the same seed.
type generator struct {
	*rand.Rand
	// owners are references that objects may have. Their objects exist: a garbage collector may be watching.
	owners []metav1.OwnerReference
}

func newGenerator(seed uint64) generator { return generator{Rand: rand.New(rand.NewPCG(seed, 1))} }

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

// crd is a definition with a random spec and a status subresource.
func (g generator) crd(name string) *apiextensionsv1.CustomResourceDefinition {
	spec := g.structure(3, 5+g.IntN(4))
	status := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"ready": {Type: "boolean"}, "count": {Type: "integer"},
	}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name + "s.ssa.test"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "ssa.test", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: name + "s", Singular: name, Kind: strings.ToUpper(name[:1]) + name[1:], ListKind: name + "List",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": status},
				}},
			}},
		},
	}
}

func (g generator) structure(depth, size int) apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for i := range size {
		s.Properties[fmt.Sprintf("f%d", i)] = g.field(depth)
	}
	switch {
	case g.chance(15):
		s.XMapType = pointer("atomic")
	case g.chance(10):
		s.XPreserveUnknownFields = pointer(true)
	}
	return s
}

func (g generator) field(depth int) apiextensionsv1.JSONSchemaProps {
	s := g.anyField(depth)
	if s.Default == nil && g.chance(10) {
		s.Nullable = true
	}
	return s
}

func (g generator) anyField(depth int) apiextensionsv1.JSONSchemaProps {
	if depth == 0 || g.chance(35) {
		return g.scalar(true)
	}
	switch g.IntN(9) {
	case 0, 1:
		return g.withDefault(g.structure(depth-1, 1+g.IntN(4)))
	case 2:
		item := g.field(depth - 1)
		s := apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &item}}
		if g.chance(20) {
			s.XMapType = pointer("atomic")
		}
		return s
	case 3:
		return list("atomic", g.structure(depth-1, 1+g.IntN(3)))
	case 4:
		return list("", g.scalar(false))
	case 5:
		return list("set", apiextensionsv1.JSONSchemaProps{Type: []string{"string", "integer"}[g.IntN(2)]})
	case 6:
		return g.mapList(depth)
	case 7:
		return apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: pointer(true)}
	default:
		s := g.structure(depth-1, 2)
		s.XMapType, s.XPreserveUnknownFields, s.XEmbeddedResource = nil, pointer(true), true
		return s
	}
}

// mapList returns a list whose items have one or two keys, one of which may have a default.
func (g generator) mapList(depth int) apiextensionsv1.JSONSchemaProps {
	item := g.structure(depth-1, 1+g.IntN(3))
	item.XMapType = nil
	item.Properties["name"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	item.Required = []string{"name"}
	s := list("map", item)
	s.XListMapKeys = []string{"name"}
	if g.chance(40) {
		item.Properties["port"] = apiextensionsv1.JSONSchemaProps{Type: "integer", Default: raw(80)}
		s.XListMapKeys = []string{"name", "port"}
	}
	return s
}

func (g generator) withDefault(s apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	if g.chance(20) {
		s.Default = raw(map[string]any{})
	}
	return s
}

func (g generator) scalar(defaults bool) apiextensionsv1.JSONSchemaProps {
	s := []apiextensionsv1.JSONSchemaProps{
		{Type: "string"}, {Type: "integer"}, {Type: "boolean"}, {Type: "number"}, {XIntOrString: true}, {Type: "string", Format: "date-time"},
	}[g.IntN(6)]
	if defaults && g.chance(25) {
		s.Default = raw(g.value(s))
	}
	return s
}

func list(kind string, item apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}}
	if kind != "" {
		s.XListType = &kind
	}
	return s
}

// value is a random value of s out of few, so that independent ones often agree.
func (g generator) value(s apiextensionsv1.JSONSchemaProps) any {
	if s.Nullable && g.chance(15) {
		return nil
	}
	if s.XIntOrString {
		return []any{int64(1), "50%"}[g.IntN(2)]
	}
	switch s.Type {
	case "string":
		if s.Format == "date-time" {
			return []string{"2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"}[g.IntN(2)]
		}
		return []string{"", "a", "b"}[g.IntN(3)]
	case "integer":
		return int64(g.IntN(3))
	case "number":
		return []any{0.5, 1.0, int64(2)}[g.IntN(3)]
	case "boolean":
		return g.chance(50)
	case "array":
		return g.items(s)
	default:
		return g.object(s)
	}
}

func (g generator) items(s apiextensionsv1.JSONSchemaProps) []any {
	items, seen := []any{}, map[string]bool{}
	for range g.IntN(4) {
		item := g.value(*s.Items.Schema)
		identity := string(raw(item).Raw)
		if fields, ok := item.(map[string]any); ok && s.XListMapKeys != nil {
			fields["name"] = []string{"x", "y", "z"}[g.IntN(3)]
			port, ok := fields["port"]
			if !ok || port == nil {
				port = 80
			}
			identity = fmt.Sprint(fields["name"])
			if len(s.XListMapKeys) > 1 {
				identity += fmt.Sprint(port)
			}
		}
		if s.XListType == nil || *s.XListType == "atomic" || !seen[identity] {
			items = append(items, item)
		}
		seen[identity] = true
	}
	return items
}

func (g generator) object(s apiextensionsv1.JSONSchemaProps) map[string]any {
	fields := map[string]any{}
	for name, property := range sorted(s.Properties) {
		if g.chance(55) {
			fields[name] = g.value(property)
		}
		if g.chance(2) {
			fields[name] = nil // a null where none is allowed
		}
	}
	if s.AdditionalProperties != nil {
		for _, name := range []string{"k1", "k2", "k/3"} {
			if g.chance(40) {
				fields[name] = g.value(*s.AdditionalProperties.Schema)
			}
		}
	}
	if s.XPreserveUnknownFields != nil {
		for _, unknown := range []any{"text", int64(7), []any{"a", int64(1)}, map[string]any{"deep": map[string]any{"er": "x"}}, map[string]any{}} {
			if g.chance(20) {
				fields[fmt.Sprintf("u%d", g.IntN(3))] = unknown
			}
		}
	}
	if s.XEmbeddedResource {
		fields["apiVersion"], fields["kind"] = "v1", "Embedded"
		fields["metadata"] = map[string]any{"name": "n", "labels": g.labels()}
	}
	return fields
}

func (g generator) labels() map[string]any {
	labels := map[string]any{}
	for _, name := range []string{"l1", "l2", "example.org/l3"} {
		if g.chance(50) {
			labels[name] = []string{"a", "b"}[g.IntN(2)]
		}
	}
	return labels
}

// desired is a random object of crd's kind.
func (g generator) desired(crd *apiextensionsv1.CustomResourceDefinition, namespace, name string) *unstructured.Unstructured {
	metadata := map[string]any{"name": name, "namespace": namespace, "labels": g.labels(), "creationTimestamp": nil}
	if g.chance(50) {
		metadata["annotations"] = g.labels()
	}
	if g.chance(40) {
		metadata["ownerReferences"] = g.ownerReferences()
	}
	if g.chance(30) {
		metadata["finalizers"] = []any{[]string{"ssa.test/one", "ssa.test/two"}[g.IntN(2)]}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ssa.test/v1", "kind": crd.Spec.Names.Kind, "metadata": metadata,
		"spec":   g.object(specOf(crd)),
		"status": map[string]any{},
	}}
}

func (g generator) ownerReferences() []any {
	owners := []any{}
	for _, o := range g.owners {
		if g.chance(60) {
			owner := map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name, "uid": string(o.UID)}
			if g.chance(50) {
				owner["blockOwnerDeletion"] = g.chance(50)
			}
			owners = append(owners, owner)
		}
	}
	return owners
}

// varied is desired with the fields at random places changed.
func (g generator) varied(crd *apiextensionsv1.CustomResourceDefinition, desired *unstructured.Unstructured) *unstructured.Unstructured {
	out := desired.DeepCopy()
	other := g.desired(crd, desired.GetNamespace(), desired.GetName())
	part := []string{"spec", "metadata"}[g.IntN(2)]
	into, _ := out.Object[part].(map[string]any)
	from, _ := other.Object[part].(map[string]any)
	for name, value := range sorted(from) {
		switch {
		case name == "name" || name == "namespace":
		case g.chance(25):
			into[name] = value
		case g.chance(10):
			delete(into, name)
		case g.chance(15):
			into[name] = g.emptied(into[name])
		}
	}
	return out
}

// emptied is a value with maps and lists at random places empty.
func (g generator) emptied(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if g.chance(40) {
			return map[string]any{}
		}
		out := maps.Clone(value)
		for name, inner := range sorted(value) {
			out[name] = g.emptied(inner)
		}
		return out
	case []any:
		if g.chance(40) {
			return []any{}
		}
		out := slices.Clone(value)
		for i := range out {
			if _, ok := out[i].(map[string]any); ok && g.chance(50) {
				out[i] = g.emptied(out[i])
			}
		}
		return out
	}
	return value
}

func specOf(crd *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.JSONSchemaProps {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

func raw(v any) *apiextensionsv1.JSON {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return &apiextensionsv1.JSON{Raw: encoded}
}

func pointer[T any](v T) *T { return &v }
