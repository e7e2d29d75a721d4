package apiversion

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Applied returns the object of a server-side apply in the stored version; obj itself if it is in that version. It has the fields that obj
// sets, and not the zeros of a converted object, of which the field manager would become an owner. A list is converted as a whole. The
// object that it is compared with must be read in the version of the result. A nil Boundary converts nothing.
func (b *Boundary) Applied(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if b == nil {
		return obj, nil
	}
	t, err := b.translation(ctx, obj)
	if err != nil {
		return nil, err
	}
	if t == nil {
		if len(obj.GetOwnerReferences()) > 0 {
			obj = obj.DeepCopy()
			b.setOwners(ctx, obj)
		}
		return obj, nil
	}
	bare := &unstructured.Unstructured{}
	bare.SetGroupVersionKind(t.code)
	bare.SetName(obj.GetName())
	bare.SetNamespace(obj.GetNamespace())
	without, err := t.toStored(ctx, bare)
	if err != nil {
		return nil, err
	}
	with, err := t.toStored(ctx, obj)
	if err != nil {
		return nil, err
	}
	content := difference(contentOf(without), contentOf(with))
	dropNulls(content)
	keepGroups(content, contentOf(with), contentOf(obj))
	applied := &unstructured.Unstructured{Object: content}
	applied.SetGroupVersionKind(t.stored)
	if metadata, ok := obj.Object["metadata"].(document); ok {
		content["metadata"] = runtime.DeepCopyJSON(metadata)
	}
	annotations := map[string]string{}
	for name, value := range obj.GetAnnotations() {
		if !isConversionData(name) {
			annotations[name] = value
		}
	}
	for name, value := range with.GetAnnotations() {
		if isConversionData(name) {
			annotations[name] = value
		}
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	applied.SetAnnotations(annotations)
	b.setOwners(ctx, applied)
	return applied, nil
}

// contentOf returns the fields of an unstructured object without its metadata and kind.
func contentOf(obj client.Object) document {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	content := maps.Clone(u.Object)
	for _, name := range []string{"metadata", "apiVersion", "kind"} {
		delete(content, name)
	}
	return content
}

// dropNulls removes the nulls of a merge patch.
func dropNulls(content document) {
	maps.DeleteFunc(content, func(_ string, value any) bool {
		nested, ok := value.(document)
		if ok {
			dropNulls(nested)
		}
		return value == nil
	})
}

// keepGroups adds the objects that the original sets too, and of which nothing is left in the stored version: they may be required there,
// as is the empty source of bootstrap data of a MachinePool's Machine in v1beta1.
func keepGroups(applied, converted, original document) {
	for name, value := range converted {
		nested, ok := value.(document)
		set, found := original[name].(document)
		if !ok || !found {
			continue
		}
		into, known := applied[name].(document)
		if !known {
			into = document{}
		}
		keepGroups(into, nested, set)
		if known || len(nested) == 0 || len(into) > 0 {
			applied[name] = into
		}
	}
}

// checkApplied returns an error for applied objects that are not in the stored version.
func (b *Boundary) checkApplied(ctx context.Context, obj runtime.ApplyConfiguration) error {
	kind, found := kindOfApplied(obj)
	if !found {
		return nil
	}
	t, err := b.of(ctx, kind)
	if err != nil || t == nil {
		return err
	}
	return fmt.Errorf("applying %s: version %s is not the stored one: apply the object in version %s, see Applied of package apiversion",
		kind.Kind, kind.Version, t.stored.Version)
}

// kindOfApplied returns the kind of an applied object, which is unstructured, or has a generated type.
func kindOfApplied(obj runtime.ApplyConfiguration) (schema.GroupVersionKind, bool) {
	switch o := obj.(type) {
	case interface {
		GroupVersionKind() schema.GroupVersionKind
	}:
		return o.GroupVersionKind(), true
	case interface {
		GetAPIVersion() *string
		GetKind() *string
	}:
		if o.GetAPIVersion() != nil && o.GetKind() != nil {
			return schema.FromAPIVersionAndKind(*o.GetAPIVersion(), *o.GetKind()), true
		}
	}
	return schema.GroupVersionKind{}, false
}

// StoredKind returns a kind in the stored version; kind itself if it is not of the Registry. A nil Boundary returns kind.
func (b *Boundary) StoredKind(ctx context.Context, kind schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	if b == nil {
		return kind, nil
	}
	t, err := b.of(ctx, kind)
	if err != nil || t == nil {
		return kind, err
	}
	return t.stored, nil
}

// In returns a whole object in another version of its kind; obj itself if it is in that version.
func (b *Boundary) In(ctx context.Context, version string, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind := obj.GroupVersionKind()
	if b == nil || kind.Version == version {
		return obj, nil
	}
	converted, err := b.convert(ctx, obj, kind, kind.GroupKind().WithVersion(version))
	if err != nil {
		return nil, err
	}
	u, ok := converted.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("converting %s results in a %T", kind, converted)
	}
	return u, nil
}
