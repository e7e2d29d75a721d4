package step

import (
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// document is a JSON object: an API object without the fields that patches never contain, or a merge patch.
type document map[string]any

// withoutStatus converts an object, without status and the metadata that only the API server sets.
func withoutStatus(obj runtime.Object) (document, error) {
	d, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("converting %T: %w", obj, err)
	}
	d = maps.Clone(d) // For unstructured objects, ToUnstructured does not copy.
	delete(d, "status")
	if metadata, ok := d["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		d["metadata"] = metadata
		for _, field := range []string{"resourceVersion", "generation", "managedFields", "creationTimestamp", "deletionTimestamp"} {
			delete(metadata, field)
		}
	}
	return d, nil
}

// statusDifference returns the merge patch between the statuses of two objects; empty if they are equal.
func statusDifference(before, after runtime.Object) (document, error) {
	from, err := statusOnly(before)
	if err != nil {
		return nil, err
	}
	to, err := statusOnly(after)
	if err != nil {
		return nil, err
	}
	return difference(from, to), nil
}

// addZeros adds the zeros that a first status has beside a patch. A later patch would never contain them, and columns of kubectl would be
// empty instead of 0.
func (d document) addZeros(before, after runtime.Object) error {
	if field := statusField(before); !field.IsValid() || !field.IsZero() {
		return nil
	}
	to, err := statusOnly(after)
	if err != nil {
		return err
	}
	for field, value := range to.status() {
		if _, changed := d.status()[field]; !changed && value == int64(0) {
			d.status()[field] = value
		}
	}
	return nil
}

// statusField returns the status of a typed object; an invalid value for others.
func statusField(obj runtime.Object) reflect.Value {
	if value := reflect.Indirect(reflect.ValueOf(obj)); value.Kind() == reflect.Struct {
		if field := value.FieldByName("Status"); field.Kind() == reflect.Struct {
			return field
		}
	}
	return reflect.Value{}
}

// statusOnly converts the status of an object alone: converting all of a Machine takes three times as long.
func statusOnly(obj runtime.Object) (document, error) {
	var status any = obj
	if field := statusField(obj); field.IsValid() {
		status = field.Addr().Interface()
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, fmt.Errorf("converting %T: %w", status, err)
	}
	if status == any(obj) {
		return document{"status": content["status"]}, nil
	}
	return document{"status": content}, nil
}

// metadataDifference returns the merge patch between metadata and specs of two objects; empty if they are equal.
func metadataDifference(before, after runtime.Object) (document, error) {
	from, err := withoutStatus(before)
	if err != nil {
		return nil, err
	}
	to, err := withoutStatus(after)
	if err != nil {
		return nil, err
	}
	return difference(from, to), nil
}

// difference returns the merge patch (RFC 7386) from one object to another; empty if they are equal. The patch shares values with
// to below its second level.
//
// Libraries compute it from JSON text, which every write would have to encode and decode.
func difference(from, to map[string]any) document {
	patch := document{}
	for key, value := range to {
		old := from[key]
		members, isObject := value.(map[string]any)
		before, wasObject := old.(map[string]any)
		switch {
		case isObject && wasObject:
			if nested := difference(before, members); len(nested) > 0 {
				patch[key] = map[string]any(nested)
			}
		case isObject:
			patch[key] = maps.Clone(members)
		case !reflect.DeepEqual(old, value):
			patch[key] = value
		}
	}
	for key, old := range from {
		if _, kept := to[key]; !kept && old != nil {
			patch[key] = nil
		}
	}
	return patch
}

// require adds a resource version to a patch: any other version is a conflict.
func (d document) require(version string) {
	metadata, ok := d["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		d["metadata"] = metadata
	}
	metadata["resourceVersion"] = version
}

// holdsList reports whether a merge patch replaces a list, or removes a field that may be one. Labels and annotations are not.
func (d document) holdsList() bool {
	for field, value := range d {
		metadata, ok := value.(map[string]any)
		if field != "metadata" || !ok {
			if holdsList(value) {
				return true
			}
			continue
		}
		for name, part := range metadata {
			if name != "labels" && name != "annotations" && holdsList(part) {
				return true
			}
		}
	}
	return false
}

func holdsList(v any) bool {
	switch v := v.(type) {
	case []any, nil:
		return true
	case map[string]any:
		for _, child := range v {
			if holdsList(child) {
				return true
			}
		}
	}
	return false
}

func (d document) spec() map[string]any {
	spec, _ := d["spec"].(map[string]any)
	return spec
}

func (d document) status() map[string]any {
	status, _ := d["status"].(map[string]any)
	return status
}

// reports returns the part of a status that v1beta1 adds for readers of v1beta2.
func (d document) reports() map[string]any {
	reports, _ := d.status()[reportsField].(map[string]any)
	return reports
}

func (d document) changesConditions() bool {
	_, ok := d.status()["conditions"]
	return ok
}

// setConditionsOf sets the conditions in the form of the object, which may be another than that of this SDK.
func (d document) setConditionsOf(obj runtime.Object) error {
	from, err := statusOnly(obj)
	if err != nil {
		return err
	}
	d.status()["conditions"] = from.status()["conditions"]
	return nil
}

// withoutReports returns a copy of a patch without that part.
func (d document) withoutReports() document {
	patch, status := maps.Clone(d), maps.Clone(d.status())
	delete(status, reportsField)
	patch["status"] = status
	return patch
}

// setReportsOf sets the metav1 conditions in the form of the object.
func (d document) setReportsOf(obj runtime.Object) error {
	from, err := statusOnly(obj)
	if err != nil {
		return err
	}
	d.reports()["conditions"] = from.reports()["conditions"]
	return nil
}
