package step

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/cluster-api/sdk/report"
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

// statusPatch is a merge patch of the status of an object.
type statusPatch struct {
	document
	// reports is whether the kind has metav1 conditions, in status.conditions. Its conditions with severities are in
	// status.deprecated.v1beta1 then, with other fields that only v1beta1 shows.
	reports bool
}

// statusDifference returns the merge patch between the statuses of two objects; empty if they are equal.
func statusDifference(before, after runtime.Object) (statusPatch, error) {
	_, reports := after.(report.Setter)
	from, err := statusOnly(before)
	if err != nil {
		return statusPatch{}, err
	}
	to, err := statusOnly(after)
	if err != nil {
		return statusPatch{}, err
	}
	return statusPatch{difference(from, to), reports}, nil
}

// addZeros adds the zeros that a first status has beside a patch. A later patch would never contain them, and columns of kubectl would be
// empty instead of 0.
func (d statusPatch) addZeros(before, after runtime.Object) error {
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

// isReport reports whether a field of a status is for people, and no code waits for it.
func (d statusPatch) isReport(field string) bool {
	return d.reports && slices.Contains(reportFields(), field)
}

// olderPath is where the fields are that older returns, in a status with metav1 conditions.
const olderPath = "deprecated.v1beta1."

// older returns the fields of the status that only v1beta1 shows, which have the conditions with severities. Kinds without metav1
// conditions have no others.
func (d statusPatch) older() map[string]any {
	if !d.reports {
		return d.status()
	}
	deprecated, _ := d.status()["deprecated"].(map[string]any)
	older, _ := deprecated["v1beta1"].(map[string]any)
	return older
}

// changesConditions reports whether the patch changes conditions with severities.
func (d statusPatch) changesConditions() bool {
	_, ok := d.older()["conditions"]
	return ok
}

// changesReports reports whether the patch changes what is for people.
func (d statusPatch) changesReports() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(d.status())), d.isReport)
}

// values returns what the patch changes in the status besides conditions and, unless reports is set, what is for people: by path, with
// those of status.initialization and status.deprecated.v1beta1 one by one.
func (d statusPatch) values(reports bool) map[string]any {
	paths := map[string]any{}
	add := func(prefix string, fields map[string]any) {
		for field, value := range fields {
			if field != "conditions" {
				paths[prefix+field] = value
			}
		}
	}
	for field, value := range d.status() {
		initialization, isObject := value.(map[string]any)
		switch {
		case d.isReport(field) && !reports, field == "deprecated" && d.older() != nil:
		case field == "initialization" && isObject:
			add("initialization.", initialization)
		default:
			add("", map[string]any{field: value})
		}
	}
	if d.reports {
		add(olderPath, d.older())
	}
	return paths
}

// setConditions sets the conditions with severities to those of an object, in its form, which may be another than that of this SDK.
func (d statusPatch) setConditions(of runtime.Object) error {
	from, err := statusOnly(of)
	if err != nil {
		return err
	}
	d.older()["conditions"] = statusPatch{from, d.reports}.older()["conditions"]
	return nil
}

// setReports sets the metav1 conditions to those of an object.
func (d statusPatch) setReports(of runtime.Object) error {
	from, err := statusOnly(of)
	if err != nil {
		return err
	}
	d.status()["conditions"] = from.status()["conditions"]
	return nil
}

// withoutReports returns a copy of a patch without what is for people.
func (d statusPatch) withoutReports() statusPatch {
	patch, status := maps.Clone(d.document), maps.Clone(d.status())
	maps.DeleteFunc(status, func(field string, _ any) bool { return d.isReport(field) })
	patch["status"] = status
	return statusPatch{patch, d.reports}
}
