package lossless

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// annotation has what the version of an object cannot express, as the JSON of another version without metadata.
const annotation = clusterv1.ConversionDataAnnotation

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

// fieldsOf returns the spec and the status of an object. Others than objects are skipped.
func fieldsOf(object Object) fields {
	result := fields{}
	for _, name := range []string{"spec", "status"} {
		if value, ok := object[name].(Object); ok {
			result[name] = value
		}
	}
	return result
}

// data is the content of the annotation.
type data struct {
	kind   schema.GroupVersionKind
	fields fields
}

// is reports whether the data has a kind.
func (d data) is(kind schema.GroupVersionKind) bool { return d.kind == kind && len(d.fields) > 0 }

// dataOf returns the content of the annotation of an object. What cannot be read is ignored.
func dataOf(o client.Object) data {
	raw, found := o.GetAnnotations()[annotation]
	content := Object{}
	if !found || kjson.UnmarshalCaseSensitivePreserveInts([]byte(raw), &content) != nil {
		return data{}
	}
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	return data{kind: schema.FromAPIVersionAndKind(apiVersion, kind), fields: fieldsOf(content)}
}

// encode returns the content of an annotation, and reports whether it is small enough for one. If not, it is empty.
func encode(kind schema.GroupVersionKind, f fields) (string, bool) {
	content := maps.Clone(Object(f))
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
	raw, err := json.Marshal(content)
	if err != nil || len(raw) > maxData {
		return "", false
	}
	return string(raw), true
}

// treeOf returns the JSON of an object, with no other metadata than its name and namespace: what API servers know of the managers of
// fields takes longer than everything else. It changes empty, an empty object of the same type.
func treeOf[T client.Object](o, empty T) (Object, error) {
	reflect.ValueOf(empty).Elem().Set(reflect.ValueOf(o).Elem())
	metadata, err := metadataOf(empty)
	if err != nil {
		return nil, err
	}
	*metadata = metav1.ObjectMeta{Name: o.GetName(), Namespace: o.GetNamespace()}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(empty)
}

// setMetadata sets the metadata of an object to a copy of that of another one, and the annotation to its content, if it is not empty.
func setMetadata(dst, src client.Object, content string) error {
	from, err := metadataOf(src)
	if err != nil {
		return err
	}
	to, err := metadataOf(dst)
	if err != nil {
		return err
	}
	from.DeepCopyInto(to)
	delete(to.Annotations, annotation)
	switch {
	case content != "":
		metav1.SetMetaDataAnnotation(to, annotation, content)
	case len(to.Annotations) == 0:
		to.Annotations = nil
	}
	return nil
}

// metadataOf returns the metadata of an object.
func metadataOf(o client.Object) (*metav1.ObjectMeta, error) {
	accessor, ok := o.(metav1.ObjectMetaAccessor)
	if !ok {
		return nil, fmt.Errorf("%T has no metadata", o)
	}
	metadata, ok := accessor.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok {
		return nil, fmt.Errorf("%T has other metadata than objects of Kubernetes", o)
	}
	return metadata, nil
}
