package lossless

import (
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// maxData is the maximum size of the annotation, in bytes: half of what all annotations of an object may have together.
const maxData = 128 << 10

// fields are the spec and the status of an object, or parts of them. A field that is null is one which the object did not have.
type fields Object

// with returns an object with a copy of these fields, and the metadata of another one.
func (f fields) with(other Object) Object {
	object := runtime.DeepCopyJSON(Object(f))
	object["metadata"] = other["metadata"]
	return object
}

// annotation has what the version of an object cannot express, as the JSON of another version without metadata.
const annotation = clusterv1.ConversionDataAnnotation

// data is the content of the annotation.
type data struct {
	Kind   schema.GroupVersionKind
	Fields fields
}

// is reports whether the data has a kind.
func (d data) is(kind schema.GroupVersionKind) bool { return d.Kind == kind && len(d.Fields) > 0 }

// dataOf returns data with the spec and the status of an object.
func dataOf(kind schema.GroupVersionKind, object map[string]any) data {
	d := data{Kind: kind, Fields: fields{}}
	for _, name := range []string{"spec", "status"} {
		if value, ok := object[name]; ok {
			d.Fields[name] = value
		}
	}
	return d
}

// takeData removes the annotation of an object, and returns its content. What cannot be read is ignored.
func takeData(object Object) data {
	raw, found, err := unstructured.NestedString(object, "metadata", "annotations", annotation)
	if !found || err != nil {
		return data{}
	}
	unstructured.RemoveNestedField(object, "metadata", "annotations", annotation)
	if annotations, _, _ := unstructured.NestedMap(object, "metadata", "annotations"); len(annotations) == 0 {
		unstructured.RemoveNestedField(object, "metadata", "annotations")
	}
	content := Object{}
	if kjson.UnmarshalCaseSensitivePreserveInts([]byte(raw), &content) != nil {
		return data{}
	}
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	d := dataOf(schema.FromAPIVersionAndKind(apiVersion, kind), content)
	for name, value := range d.Fields {
		if _, ok := value.(Object); !ok {
			delete(d.Fields, name)
		}
	}
	return d
}

// putData sets the annotation of an object, and reports whether the content is small enough for that.
func putData(object Object, d data) bool {
	content := maps.Clone(Object(d.Fields))
	content["apiVersion"], content["kind"] = d.Kind.GroupVersion().String(), d.Kind.Kind
	raw, err := json.Marshal(content)
	if err != nil || len(raw) > maxData {
		return false
	}
	return unstructured.SetNestedField(object, string(raw), "metadata", "annotations", annotation) == nil
}
