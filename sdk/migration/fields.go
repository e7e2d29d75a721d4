package migration

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Unchanged returns the patch that changes nothing, which makes the API server store an object in the current version. It writes nothing if
// the object is.
func Unchanged() []byte { return []byte("{}") }

// placeholder is the manager of the only field of an object whose other managers all used versions that are no longer served. An object
// without managers would get one with its next server-side apply that owns all fields, and none could be removed by applying.
const placeholder = "crd-migration"

// Fields returns the patch that removes the managers of fields in versions that are no longer served; nil without any. Once a version
// is removed, API servers cannot convert what such managers have set. The patch is rejected if the object has changed since.
func (d Definition) Fields(o *metav1.PartialObjectMetadata) ([]byte, error) {
	kept := slices.DeleteFunc(slices.Clone(o.ManagedFields), func(f metav1.ManagedFieldsEntry) bool {
		version, err := schema.ParseGroupVersion(f.APIVersion)
		return err == nil && version.Group == d.Kind.Group && !slices.Contains(d.Served, version.Version)
	})
	if len(kept) == len(o.ManagedFields) {
		return nil, nil
	}
	if len(kept) == 0 {
		kept = []metav1.ManagedFieldsEntry{{
			Manager: placeholder, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: d.Requested().GroupVersion().String(),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{}}}`),
		}}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": kept, "resourceVersion": o.ResourceVersion}})
	if err != nil {
		return nil, fmt.Errorf("encoding the managed fields of %s: %w", o.Name, err)
	}
	return patch, nil
}
