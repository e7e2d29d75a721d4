package lossless

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object is the JSON of an object. Integers are int64.
type Object = map[string]any

// Version is a kind in a version.
type Version struct {
	schema.GroupVersionKind
	// New returns an empty object. Without it, which is for versions without a Go type, objects are unstructured only, and their
	// unknown fields are not removed.
	New func() client.Object
}

// VersionOf returns the version that references of the spoke have for a kind, because references of the hub have none.
type VersionOf func(kind schema.GroupKind) string

// Kind converts the objects of one kind between two versions. Its functions get the JSON of an object, which they may change except
// for the metadata, of which they see name, namespace and labels. What they leave is decoded as the other version, without the fields
// that this version does not have.
//
// The functions are also called with parts of objects, for which they must give the corresponding parts of the result.
type Kind struct {
	// Hub and Spoke are the kind in both versions.
	Hub, Spoke Version

	// Up changes an object of the spoke to one of the hub.
	Up func(object Object)
	// Down changes an object of the hub to one of the spoke.
	Down func(object Object, version VersionOf)
	// Fill sets fields of the spoke that Down sets although clients of the spoke need not, so that they do not count as lost.
	// Optional.
	Fill func(object Object)
	// Lookup returns the version of a kind that implements a contract we support, and reports whether it is installed. If it is not,
	// the version is v1beta1: a reference to a kind that is not installed must not make objects unreadable. Optional.
	Lookup func(ctx context.Context, kind schema.GroupKind) (version string, ok bool)

	// AsWritten: clients of the spoke get exactly what was written, also without the empty fields that the type adds. For templates, to
	// which JSON patches are applied.
	AsWritten bool
	// Present are the names of fields that differ if empty from being absent. In all others, empty objects and lists are removed.
	Present []string
	// Verbatim are the names of fields in which nothing is removed.
	Verbatim []string
	// Whole are the names of objects that are restored as a whole, or not at all.
	Whole []string
	// Grouping are the names of objects of the hub that the spoke may not have, because it has their fields elsewhere. What it cannot
	// express of them is restored even if they were removed.
	Grouping []string
}

// ToHub converts an object of the spoke to one of the hub. Both may be unstructured. The result does not share memory with the source.
func (k *Kind) ToHub(ctx context.Context, src, dst client.Object) error {
	if err := k.toHub(ctx, src, dst); err != nil {
		return fmt.Errorf("converting %s %s to %s: %w", k.Spoke, client.ObjectKeyFromObject(src), k.Hub.Version, err)
	}
	return nil
}

func (k *Kind) toHub(ctx context.Context, src, dst client.Object) error {
	version := k.versions(ctx)
	spoke, err := k.Spoke.treeOf(src)
	if err != nil {
		return err
	}
	written := k.written(src, spoke)
	if kept := dataOf(src, SpokeAnnotation, k.Spoke); kept != nil { // Another converter left it, which does not know the annotation.
		k.restoreSpoke(kept, spoke, version)
		k.restoreSpoke(kept, written, version)
	}
	hub, err := k.up(spoke)
	if err != nil {
		return err
	}
	if kept := dataOf(src, hubAnnotation, k.Hub); kept != nil {
		k.restoreHub(kept, hub, version)
	}
	lost, err := k.lostBySpoke(written, hub, version)
	if err != nil {
		return err
	}
	content := ""
	if len(lost) > 0 {
		content, _ = encode(k.Spoke.GroupVersionKind, lost)
	}
	return k.Hub.store(dst, src, hub, SpokeAnnotation, content)
}

// ToSpoke converts an object of the hub to one of the spoke. Both may be unstructured. The result does not share memory with the source.
func (k *Kind) ToSpoke(ctx context.Context, src, dst client.Object) error {
	if err := k.toSpoke(ctx, src, dst); err != nil {
		return fmt.Errorf("converting %s %s to %s: %w", k.Hub, client.ObjectKeyFromObject(src), k.Spoke.Version, err)
	}
	return nil
}

func (k *Kind) toSpoke(ctx context.Context, src, dst client.Object) error {
	version := k.versions(ctx)
	hub, err := k.Hub.treeOf(src)
	if err != nil {
		return err
	}
	spoke, err := k.down(hub, version)
	if err != nil {
		return err
	}
	back, err := k.up(spoke)
	if err != nil {
		return err
	}
	if kept := dataOf(src, SpokeAnnotation, k.Spoke); kept != nil {
		k.restoreSpoke(kept, spoke, version)
	}
	return k.Spoke.store(dst, src, spoke, hubAnnotation, k.lostByHub(hub, back))
}

// lostByHub returns the content of the annotation of an object of the spoke: the whole spec if the spoke cannot express a part of it,
// and the whole status likewise, as clients of other versions of Cluster API expect it.
func (k *Kind) lostByHub(hub, back Object) string {
	lost := k.lost(hub, back, "spec", "status")
	if len(lost) == 0 {
		return ""
	}
	kept := fields{}
	for name := range lost {
		kept[name] = Object{}
		if part, ok := hub[name].(Object); ok {
			kept[name] = part
		}
	}
	content, fits := encode(k.Hub.GroupVersionKind, kept)
	if !fits {
		// Lists that are not lost are what makes objects too large for an annotation, and nothing else depends on them.
		kept = fields(runtime.DeepCopyJSON(Object(kept)))
		dropLists(Object(kept), Object(lost))
		content, _ = encode(k.Hub.GroupVersionKind, kept)
	}
	return content
}

// fallback is the version of kinds that are not installed.
const fallback = "v1beta1"

// versions looks versions up, once per kind.
func (k *Kind) versions(ctx context.Context) VersionOf {
	found := map[schema.GroupKind]string{}
	return func(kind schema.GroupKind) string {
		version, ok := found[kind]
		if ok {
			return version
		}
		if k.Lookup != nil {
			version, ok = k.Lookup(ctx, kind)
		}
		if !ok {
			version = fallback
		}
		found[kind] = version
		return version
	}
}

// up returns the hub's form of an object of the spoke.
func (k *Kind) up(spoke Object) (Object, error) {
	hub := runtime.DeepCopyJSON(spoke)
	k.Up(hub)
	return k.normal(hub, k.Hub)
}

// down returns the spoke's form of an object of the hub.
func (k *Kind) down(hub Object, version VersionOf) (Object, error) {
	spoke := runtime.DeepCopyJSON(hub)
	k.Down(spoke, version)
	return k.normal(spoke, k.Spoke)
}

// normal returns an object as its type writes it.
func (k *Kind) normal(object Object, version Version) (Object, error) {
	k.prune(object)
	object["apiVersion"], object["kind"] = version.GroupVersion().String(), version.Kind
	return version.normal(object)
}

// restoreHub restores what the spoke cannot express, unless its clients changed it. Data that does not fit is ignored: clients
// can write anything into an annotation, and a stored object that cannot be converted could not be mended.
func (k *Kind) restoreHub(kept fields, hub Object, version VersionOf) {
	saved, err := k.normal(kept.with(hub), k.Hub)
	if err != nil {
		return
	}
	spoke, err := k.down(saved, version)
	if err != nil {
		return
	}
	shown, err := k.up(spoke)
	if err != nil {
		return
	}
	k.restoreInto(hub, k.lost(saved, shown, slices.Collect(maps.Keys(kept))...), shown, k.Hub)
}

// restoreSpoke restores what the hub cannot express, unless its clients changed it.
func (k *Kind) restoreSpoke(kept fields, spoke Object, version VersionOf) {
	hub, err := k.up(kept.with(spoke))
	if err != nil {
		return
	}
	shown, err := k.down(hub, version)
	if err != nil {
		return
	}
	k.restoreInto(spoke, kept, shown, k.Spoke)
}

// restoreInto restores lost fields, unless the result does not fit the type.
func (k *Kind) restoreInto(object Object, lost fields, shown Object, version Version) {
	result := runtime.DeepCopyJSON(object)
	k.restore(lost, shown, result)
	if _, err := version.normal(result); err != nil {
		return
	}
	clear(object)
	maps.Copy(object, result)
}

// written returns the spec of an object of the spoke as a client wrote it, and spoke, a copy of the object as its type writes it, for
// other objects. What an API server converts is as written, and so is what it must give back: JSON patches find only what is there, and
// repositories compare text. An object without UID may be a part of one, such as what a client applies: it must not get more than it has.
func (k *Kind) written(src client.Object, spoke Object) Object {
	result := runtime.DeepCopyJSON(spoke)
	u, ok := src.(*unstructured.Unstructured)
	if ok && u.GetUID() != "" {
		spec, hasSpec := u.Object["spec"].(Object)
		typed, isTyped := spoke["spec"].(Object)
		if hasSpec && isTyped {
			result["spec"] = runtime.DeepCopyJSON(spec)
			if k.AsWritten {
				return result
			}
			addEmpty(At(result, "spec"), typed)
		}
	}
	if k.Fill != nil {
		k.Fill(result)
	}
	return result
}

// addEmpty adds the empty fields that a type writes although no client set them.
func addEmpty(object, typed Object) {
	for name, value := range typed {
		own, exists := object[name]
		nested, isObject := value.(Object)
		ownNested, isOwnObject := own.(Object)
		switch {
		case !exists && isEmpty(value):
			object[name] = runtime.DeepCopyJSONValue(value)
		case isObject && isOwnObject:
			addEmpty(ownNested, nested)
		}
		items, _ := value.([]any)
		ownItems, _ := own.([]any)
		for i := range min(len(items), len(ownItems)) {
			item, isObject := items[i].(Object)
			ownItem, isOwnObject := ownItems[i].(Object)
			if isObject && isOwnObject {
				addEmpty(ownItem, item)
			}
		}
	}
}

// isEmpty reports whether a value is the zero of its type, or an object that has nothing else.
func isEmpty(value any) bool {
	switch typed := value.(type) {
	case Object:
		for _, nested := range typed {
			if !isEmpty(nested) {
				return false
			}
		}
		return true
	case []any:
		return len(typed) == 0
	}
	return value == nil || reflect.ValueOf(value).IsZero()
}

// lostBySpoke returns the fields of a spoke's spec that the hub cannot express. Controllers write the status in the hub, so that
// fields of the status are not kept: they would be stale.
func (k *Kind) lostBySpoke(spoke, hub Object, version VersionOf) (fields, error) {
	back, err := k.down(Object{"metadata": hub["metadata"], "spec": hub["spec"]}, version)
	if err != nil {
		return nil, err
	}
	return k.lost(spoke, back, "spec"), nil
}
