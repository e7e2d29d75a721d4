package ssa

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Owned returns the fields of an object that a field manager has set, other than of subresources, in the versions in which it did.
func Owned(obj metav1.Object, manager string) *fieldpath.Set {
	all := fieldpath.NewSet()
	for _, e := range obj.GetManagedFields() {
		if e.Manager != manager || e.Subresource != "" || e.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())) == nil {
			all = all.Union(set)
		}
	}
	return all
}

// entry is one entry of managedFields.
type entry struct {
	manager, operation, subresource string
	apiVersion                      fieldpath.APIVersion
	fields                          map[string]any
}

// entries returns the managedFields of an object, without decoding their fields.
func entries(live *unstructured.Unstructured) []entry {
	list, _, _ := unstructured.NestedFieldNoCopy(live.Object, "metadata", "managedFields")
	items, _ := list.([]any)
	all := make([]entry, 0, len(items))
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		e := entry{}
		e.manager, _ = fields["manager"].(string)
		e.operation, _ = fields["operation"].(string)
		e.subresource, _ = fields["subresource"].(string)
		version, _ := fields["apiVersion"].(string)
		e.apiVersion = fieldpath.APIVersion(version)
		e.fields, _ = fields["fieldsV1"].(map[string]any)
		all = append(all, e)
	}
	return all
}

// isApply reports whether e has the fields that manager owns by server-side apply, other than to subresources.
func (e entry) isApply(manager string) bool {
	return e.manager == manager && e.operation == string(metav1.ManagedFieldsOperationApply) && e.subresource == ""
}

// key identifies an entry among those of its object, as in the API server.
func (e entry) key() string {
	if e.operation == string(metav1.ManagedFieldsOperationApply) {
		return fmt.Sprintf("%q %s %q", e.manager, e.operation, e.subresource)
	}
	return fmt.Sprintf("%q %s %q %s", e.manager, e.operation, e.subresource, e.apiVersion)
}

func (e entry) set() (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if err := fill(set, e.fields); err != nil {
		return nil, fmt.Errorf("managedFields of %s: %w", e.manager, err)
	}
	return set, nil
}

// fill adds fields in the format of managedFields to set. The library can only do that from JSON.
func fill(set *fieldpath.Set, fields map[string]any) error {
	for name, value := range fields {
		if name == "." { // The parent itself, which the caller adds.
			continue
		}
		element, err := fieldpath.DeserializePathElement(name)
		if err != nil {
			return err
		}
		below, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("%s holds a %T", name, value)
		}
		_, itself := below["."]
		if itself || len(below) == 0 {
			set.Members.Insert(element)
		}
		if len(below) > 1 || (len(below) == 1 && !itself) {
			if err := fill(set.Children.Descend(element), below); err != nil {
				return err
			}
		}
	}
	return nil
}

// identity returns the fields of an apply configuration that have no owner.
func identity() *fieldpath.Set {
	return fieldpath.NewSet(
		fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata"),
		fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"),
	)
}
