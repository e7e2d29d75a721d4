package migration

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Definition is what migrating depends on of a CustomResourceDefinition.
type Definition struct {
	// Kind is its kind, in the version in which new objects are stored.
	Kind schema.GroupVersionKind
	// Served are the versions that it serves.
	Served []string
	// Stored are the versions in which objects may be stored.
	Stored []string
}

// Of reads a CustomResourceDefinition.
func Of(crd *unstructured.Unstructured) Definition {
	d := Definition{}
	d.Kind.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
	d.Kind.Kind, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "kind")
	d.Stored, _, _ = unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	versions, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	list, _ := versions.([]any)
	for _, item := range list {
		v, _ := item.(map[string]any)
		name, _ := v["name"].(string)
		if v["served"] == true {
			d.Served = append(d.Served, name)
		}
		if v["storage"] == true {
			d.Kind.Version = name
		}
	}
	return d
}

// Migrated reports whether all objects are stored in the version in which new ones are.
func (d Definition) Migrated() bool { return slices.Equal(d.Stored, []string{d.Kind.Version}) }

// Requested returns the kind in the version for requests: that in which objects are stored, if it is served. Without any, requests fail.
func (d Definition) Requested() schema.GroupVersionKind {
	if len(d.Served) == 0 || slices.Contains(d.Served, d.Kind.Version) {
		return d.Kind
	}
	return d.Kind.GroupKind().WithVersion(d.Served[0])
}
