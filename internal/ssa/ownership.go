package ssa

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// entry is one entry of managedFields.
type entry struct {
	manager, operation, subresource string
	apiVersion                      fieldpath.APIVersion
	fields                          map[string]any
}

// entries are the entries of live's managedFields, without decoding their fields.
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

// isApply says whether e is what manager owns by server-side apply to the object itself.
func (e entry) isApply(manager string) bool {
	return e.manager == manager && e.operation == string(metav1.ManagedFieldsOperationApply) && e.subresource == ""
}

// key tells an entry from the others of its object, as the API server does.
func (e entry) key() string {
	if e.operation == string(metav1.ManagedFieldsOperationApply) {
		return fmt.Sprintf("%q %s %q", e.manager, e.operation, e.subresource)
	}
	return fmt.Sprintf("%q %s %q %s", e.manager, e.operation, e.subresource, e.apiVersion)
}

func (e entry) set() (*fieldpath.Set, error) {
	encoded, err := json.Marshal(e.fields)
	if err != nil {
		return nil, fmt.Errorf("managedFields of %s: %w", e.manager, err)
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(encoded)); err != nil {
		return nil, fmt.Errorf("managedFields of %s: %w", e.manager, err)
	}
	return set, nil
}

// identity is the part of an object that nobody owns, of what an apply configuration can have.
func identity() *fieldpath.Set {
	return fieldpath.NewSet(
		fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata"),
		fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"),
	)
}
