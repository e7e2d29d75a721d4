package conversion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/conversion/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// ErrUnknownKind is returned for objects of other kinds or versions than those of the registry.
var ErrUnknownKind = errors.New("kind is not supported by the conversion")

// Lookup returns the version of a kind of a provider that implements a contract we support, and reports whether the kind is installed.
// References of older versions have it, those of v1beta2 do not. It is called for every reference, so that it must not send requests.
type Lookup = func(ctx context.Context, kind schema.GroupKind) (version string, ok bool)

// OlderVersionAnnotation is on objects of the newest version. It has, as JSON, what a client wrote in an older version and the newest one
// cannot represent. Like ConversionDataAnnotation, which is on objects of older versions, it belongs to one object: who copies annotations
// of one object to another must leave both out.
const OlderVersionAnnotation = lossless.SpokeAnnotation

// Registry has all kinds with several versions. It is safe for concurrent use.
type Registry struct {
	kinds map[schema.GroupKind]*kind
	types map[reflect.Type]schema.GroupVersionKind
}

// kind is a kind with its versions.
type kind struct {
	hub lossless.Version
	// spokes are the other versions, by name.
	spokes map[string]*lossless.Kind
}

// Kind is a kind of another provider with two versions. Infrastructure makes one.
type Kind struct{ between *lossless.Kind }

// Infrastructure returns a kind of an infrastructure provider with a version for contract v1beta2, the hub, and one for contract v1beta1,
// the spoke. In the status, ready becomes initialization.provisioned, the map failureDomains becomes a list, conditions with severities
// and failures move below deprecated.v1beta1, and the other conditions are those of v1beta2.conditions. All other fields are the same in
// both versions.
func Infrastructure[Hub, Spoke any, HubPointer interface {
	*Hub
	client.Object
}, SpokePointer interface {
	*Spoke
	client.Object
}](hub, spoke schema.GroupVersion, kind string) Kind {
	return Kind{kinds.Infrastructure[Hub, Spoke, HubPointer, SpokePointer](hub, spoke, kind)}
}

// New returns the registry, with further kinds. If lookup is nil, or does not find a kind, references have the version v1beta1 unless a
// client wrote another one.
func New(lookup Lookup, further ...Kind) *Registry {
	r := &Registry{kinds: map[schema.GroupKind]*kind{}, types: map[reflect.Type]schema.GroupVersionKind{}}
	all := kinds.All(lookup)
	for _, k := range further {
		all = append(all, k.between)
	}
	for _, conversion := range all {
		of := r.kinds[conversion.Hub.GroupKind()]
		if of == nil {
			of = &kind{hub: conversion.Hub, spokes: map[string]*lossless.Kind{}}
			r.kinds[conversion.Hub.GroupKind()] = of
		}
		of.spokes[conversion.Spoke.Version] = conversion
		for _, version := range []lossless.Version{conversion.Hub, conversion.Spoke} {
			if version.New != nil {
				r.types[reflect.TypeOf(version.New())] = version.GroupVersionKind
			}
		}
	}
	return r
}

// shared is the registry of Shared.
var shared = sync.OnceValue(func() *Registry { return New(nil) })

// Shared returns the registry without a lookup, for programs that do not know which kinds are installed.
func Shared() *Registry { return shared() }

// Kinds returns all kinds, sorted.
func (r *Registry) Kinds() []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(r.kinds), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
}

// Versions returns the versions of a kind, the newest first. It returns nothing for unknown kinds.
func (r *Registry) Versions(of schema.GroupKind) []string {
	k := r.kinds[of]
	if k == nil {
		return nil
	}
	versions := append(slices.Collect(maps.Keys(k.spokes)), k.hub.Version)
	slices.SortFunc(versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return versions
}

// Hub returns the version of a kind that all others are converted to, and reports whether the kind is known.
func (r *Registry) Hub(of schema.GroupKind) (version string, ok bool) {
	k := r.kinds[of]
	if k == nil {
		return "", false
	}
	return k.hub.Version, true
}

// KindOf returns the kind of an object, also if the object does not have it set, and reports whether the registry has it in this
// version.
func (r *Registry) KindOf(o runtime.Object) (schema.GroupVersionKind, bool) {
	gvk, ok := r.types[reflect.TypeOf(o)]
	if u, isTree := o.(*unstructured.Unstructured); isTree {
		gvk = u.GroupVersionKind()
		_, ok = r.versionOf(gvk)
	}
	return gvk, ok
}

// versionOf returns a kind in a version.
func (r *Registry) versionOf(gvk schema.GroupVersionKind) (lossless.Version, bool) {
	k := r.kinds[gvk.GroupKind()]
	if k == nil {
		return lossless.Version{}, false
	}
	if k.hub.Version == gvk.Version {
		return k.hub, true
	}
	spoke, ok := k.spokes[gvk.Version]
	if !ok {
		return lossless.Version{}, false
	}
	return spoke.Spoke, true
}

// NewObject returns an empty object of a kind, with its kind set. It is unstructured if there is no Go type for the version.
func (r *Registry) NewObject(gvk schema.GroupVersionKind) (client.Object, error) {
	version, ok := r.versionOf(gvk)
	if !ok {
		return nil, fmt.Errorf("%s: %w", gvk, ErrUnknownKind)
	}
	if version.New == nil {
		return newTree(gvk), nil
	}
	o := version.New()
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o, nil
}

// newTree returns an empty unstructured object.
func newTree(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	return u
}

// Convert sets dst to src in the version of dst. Both have the same kind; each has the Go type of its version, or is unstructured with
// kind and version set. The result does not share memory with src, which does not change.
func (r *Registry) Convert(ctx context.Context, src, dst runtime.Object) error {
	from, err := r.objectOf(src)
	if err != nil {
		return err
	}
	to, err := r.objectOf(dst)
	if err != nil {
		return err
	}
	if from.gvk.GroupKind() != to.gvk.GroupKind() {
		return fmt.Errorf("cannot convert %s to %s: they are different kinds", from.gvk, to.gvk)
	}
	k := r.kinds[from.gvk.GroupKind()]
	up, down := k.spokes[from.gvk.Version], k.spokes[to.gvk.Version]
	switch {
	case from.gvk.Version == to.gvk.Version:
		return from.version.Copy(from.object, to.object)
	case down == nil:
		return up.ToHub(ctx, from.object, to.object)
	case up == nil:
		return down.ToSpoke(ctx, from.object, to.object)
	}
	hub := k.hub.New()
	if err := up.ToHub(ctx, from.object, hub); err != nil {
		return err
	}
	return down.ToSpoke(ctx, hub, to.object)
}

// In returns an object in another version of its kind; u itself if it is in that version, or if the kind does not have it.
func (r *Registry) In(ctx context.Context, version string, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind := u.GroupVersionKind()
	all := r.Versions(kind.GroupKind())
	if kind.Version == version || !slices.Contains(all, kind.Version) || !slices.Contains(all, version) {
		return u, nil
	}
	out := newTree(kind.GroupKind().WithVersion(version))
	return out, r.Convert(ctx, u, out)
}

// known is an object of the registry.
type known struct {
	object  client.Object
	gvk     schema.GroupVersionKind
	version lossless.Version
}

func (r *Registry) objectOf(o runtime.Object) (known, error) {
	gvk, ok := r.KindOf(o)
	object, isObject := o.(client.Object)
	if !ok || !isObject {
		return known{}, fmt.Errorf("%T %s: %w", o, gvk, ErrUnknownKind)
	}
	version, _ := r.versionOf(gvk)
	return known{object: object, gvk: gvk, version: version}, nil
}
