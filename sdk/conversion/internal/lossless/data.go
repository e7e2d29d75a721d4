package lossless

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// hubAnnotation is on objects of the spoke. It has what the spoke cannot express, as the JSON of the hub without metadata.
	// Managers of other versions of Cluster API read and write it, too, and fail if it has anything else than an object of the hub.
	hubAnnotation = clusterv1.ConversionDataAnnotation
	// SpokeAnnotation is on objects of the hub. It has what the hub cannot express, as the JSON of the spoke without metadata. Other
	// versions of Cluster API do not know it, so that it outlives their conversions.
	SpokeAnnotation = "conversion.cluster.x-k8s.io/older-version"

	// maxData is the maximum size of an annotation, in bytes: half of what all annotations of an object may have together.
	maxData = 128 << 10
	// maxDepth is the maximum depth of objects in objects that is converted.
	maxDepth = 500
)

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

// dataOf returns the content of an annotation of an object. What cannot be read is ignored, and what another version or kind has. Without
// a version, it is the one that the annotation is for.
func dataOf(o client.Object, annotation string, version Version) fields {
	raw, found := o.GetAnnotations()[annotation]
	content := Object{}
	if !found || kjson.UnmarshalCaseSensitivePreserveInts([]byte(raw), &content) != nil || isDeeper(content, maxDepth) {
		return nil
	}
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	if kept := schema.FromAPIVersionAndKind(apiVersion, kind); !kept.Empty() && kept != version.GroupVersionKind {
		return nil
	}
	if kept := fieldsOf(content); len(kept) > 0 {
		return kept
	}
	return nil
}

// isDeeper reports whether a value has objects and lists in each other at more than a number of levels.
func isDeeper(value any, levels int) bool {
	switch typed := value.(type) {
	case Object:
		for _, nested := range typed {
			if levels == 0 || isDeeper(nested, levels-1) {
				return true
			}
		}
	case []any:
		for _, nested := range typed {
			if levels == 0 || isDeeper(nested, levels-1) {
				return true
			}
		}
	}
	return false
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

// normal returns an object as the type of the version writes it.
func (v Version) normal(object Object) (Object, error) {
	if v.New == nil {
		return object, nil
	}
	typed := v.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed); err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
}

// treeOf returns the JSON of an object, with no other metadata than its name, namespace and labels: what API servers know of the
// managers of fields takes longer than everything else.
func (v Version) treeOf(o client.Object) (Object, error) {
	metadata := metav1.ObjectMeta{Name: o.GetName(), Namespace: o.GetNamespace(), Labels: o.GetLabels()}
	if u, ok := o.(*unstructured.Unstructured); ok {
		switch u.Object["metadata"].(type) {
		case Object, nil: // A part of an object that is applied server-side has none when the API server converts it.
		default:
			return nil, errors.New("its metadata is not an object")
		}
		if isDeeper(u.Object, maxDepth) {
			return nil, fmt.Errorf("it has more than %d levels of objects and lists in each other", maxDepth)
		}
		tree := maps.Clone(u.Object)
		reduced, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&metadata)
		if err != nil {
			return nil, err
		}
		tree["metadata"] = reduced
		return v.normal(tree)
	}
	if v.New == nil || reflect.TypeOf(v.New()) != reflect.TypeOf(o) {
		return nil, fmt.Errorf("%T is not the type of %s", o, v)
	}
	reduced := v.New()
	reflect.ValueOf(reduced).Elem().Set(reflect.ValueOf(o).Elem())
	to, err := metadataOf(reduced)
	if err != nil {
		return nil, err
	}
	*to = metadata
	return runtime.DefaultUnstructuredConverter.ToUnstructured(reduced)
}

// Copy sets an object of the version to a copy of another one, with its annotations.
func (v Version) Copy(src, dst client.Object) error {
	tree, err := v.treeOf(src)
	if err != nil {
		return err
	}
	tree["apiVersion"], tree["kind"] = v.GroupVersion().String(), v.Kind
	if err := v.fill(dst, tree); err != nil {
		return err
	}
	return copyMetadata(dst, src)
}

// store sets an object to a tree, with the metadata of another one, in which one annotation has a content unless it is empty, and
// the other one is absent.
func (v Version) store(dst, src client.Object, tree Object, annotation, content string) error {
	if err := v.fill(dst, tree); err != nil {
		return err
	}
	if err := copyMetadata(dst, src); err != nil {
		return err
	}
	annotations := maps.Clone(dst.GetAnnotations())
	delete(annotations, hubAnnotation)
	delete(annotations, SpokeAnnotation)
	if content != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotation] = content
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	dst.SetAnnotations(annotations)
	return nil
}

// fill sets an object to a tree.
func (v Version) fill(dst client.Object, tree Object) error {
	if u, ok := dst.(*unstructured.Unstructured); ok {
		u.Object = runtime.DeepCopyJSON(tree)
		return nil
	}
	if v.New == nil || reflect.TypeOf(v.New()) != reflect.TypeOf(dst) {
		return fmt.Errorf("%T is not the type of %s", dst, v)
	}
	reflect.ValueOf(dst).Elem().SetZero()
	return runtime.DefaultUnstructuredConverter.FromUnstructured(tree, dst)
}

// copyMetadata sets the metadata of an object to a copy of that of another one.
func copyMetadata(dst, src client.Object) error {
	from, isTree := src.(*unstructured.Unstructured)
	to, toTree := dst.(*unstructured.Unstructured)
	if isTree && toTree {
		metadata, _ := from.Object["metadata"].(Object)
		if metadata == nil {
			metadata = Object{} // API servers expect it.
		}
		to.Object["metadata"] = runtime.DeepCopyJSON(metadata)
		return nil
	}
	metadata := &metav1.ObjectMeta{}
	if isTree {
		tree, _ := from.Object["metadata"].(Object)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, metadata); err != nil {
			return err
		}
	} else {
		typed, err := metadataOf(src)
		if err != nil {
			return err
		}
		typed.DeepCopyInto(metadata)
	}
	if toTree {
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(metadata)
		if err != nil {
			return err
		}
		if tree["creationTimestamp"] == nil {
			delete(tree, "creationTimestamp")
		}
		to.Object["metadata"] = tree
		return nil
	}
	typed, err := metadataOf(dst)
	if err != nil {
		return err
	}
	*typed = *metadata
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
