package apiversion

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Registry converts the objects of some kinds between versions.
type Registry interface {
	// Versions returns the versions of a kind that Convert accepts, the preferred one first; none for other kinds.
	Versions(kind schema.GroupKind) []string
	// Convert sets dst, an empty object, to src, an object of another version of the kind. Either both are typed, or both are
	// unstructured, with their kinds set. src has its kind, too. It is not changed, and dst does not share memory with it.
	Convert(ctx context.Context, src, dst runtime.Object) error
}

// Options are what a Boundary requires. All are required.
type Options struct {
	Config     *rest.Config
	HTTPClient *http.Client
	// Scheme must have the Go types of all versions of the Registry, except of kinds that are used as unstructured objects alone.
	Scheme   *runtime.Scheme
	Registry Registry
	Log      logr.Logger
}

// Boundary converts objects between the versions of code and the stored ones. It is safe for concurrent use.
type Boundary struct {
	scheme   *runtime.Scheme
	registry Registry
	stored   *storedVersions
	log      logr.Logger
	clock    clock.PassiveClock
}

// New returns a Boundary. It sends no requests.
func New(o Options) (*Boundary, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(o.Config, o.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return &Boundary{
		scheme: o.Scheme, registry: o.Registry, log: o.Log, clock: clock.RealClock{},
		stored: newStoredVersions(served{d.RESTClient()}, o.Registry.Versions, clock.RealClock{}),
	}, nil
}

// Registry returns what converts objects; nil without a Boundary.
func (b *Boundary) Registry() Registry {
	if b == nil {
		return nil
	}
	return b.registry
}

// Stored returns the stored version of a kind of the Registry. It is a NoKindMatchError if no version of the Registry is served.
func (b *Boundary) Stored(ctx context.Context, kind schema.GroupKind) (string, error) {
	return b.stored.get(ctx, kind)
}

// translation is the conversion of objects between the version of code and the stored version.
type translation struct {
	*Boundary
	code, stored schema.GroupVersionKind
}

// translation returns how to convert an object or a list, which may be empty apart from its kind. Nil: it needs no conversion.
func (b *Boundary) translation(ctx context.Context, obj runtime.Object) (*translation, error) {
	kind, err := apiutil.GVKForObject(obj, b.scheme)
	if err != nil {
		return nil, nil // The client returns a better error for objects whose kind is unknown.
	}
	if meta.IsListType(obj) {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	}
	return b.of(ctx, kind)
}

// of returns how to convert objects of a kind. Nil: not at all.
func (b *Boundary) of(ctx context.Context, kind schema.GroupVersionKind) (*translation, error) {
	if !slices.Contains(b.registry.Versions(kind.GroupKind()), kind.Version) {
		return nil, nil
	}
	version, err := b.Stored(ctx, kind.GroupKind())
	switch {
	case meta.IsNoMatchError(err), err == nil && version == kind.Version:
		return nil, nil // A request for what is not served results in the usual error.
	case err != nil:
		return nil, fmt.Errorf("looking up the stored version of %s: %w", kind.GroupKind(), err)
	}
	return &translation{Boundary: b, code: kind, stored: kind.GroupKind().WithVersion(version)}, nil
}

// toStored returns an object in the stored version.
func (t *translation) toStored(ctx context.Context, obj client.Object) (client.Object, error) {
	return t.convert(ctx, obj, t.code, t.stored)
}

// fromStored sets an object of the code's version to one in the stored version. The kind of typed objects stays as it is: usually, they
// have none.
func (t *translation) fromStored(ctx context.Context, stored, into client.Object) error {
	kind := into.GetObjectKind().GroupVersionKind()
	converted, err := t.convert(ctx, stored, t.stored, t.code)
	if err != nil {
		return err
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(converted).Elem())
	into.GetObjectKind().SetGroupVersionKind(kind)
	return nil
}

// convert returns an object in another version and the same form: typed, unstructured or metadata. The result has its kind.
func (b *Boundary) convert(ctx context.Context, obj client.Object, from, to schema.GroupVersionKind) (client.Object, error) {
	if o, ok := obj.(*metav1.PartialObjectMetadata); ok {
		converted := o.DeepCopy()
		converted.SetGroupVersionKind(to)
		return converted, nil
	}
	converted, err := b.empty(to, obj)
	if err != nil {
		return nil, err
	}
	source := obj
	if obj.GetObjectKind().GroupVersionKind() != from { // Typed objects lack it usually. This one may be shared.
		value := reflect.New(reflect.TypeOf(obj).Elem())
		value.Elem().Set(reflect.ValueOf(obj).Elem())
		source, _ = value.Interface().(client.Object)
		source.GetObjectKind().SetGroupVersionKind(from)
	}
	if err := b.registry.Convert(ctx, source, converted); err != nil {
		return nil, fmt.Errorf("converting %s %s to %s: %w", from.Kind, client.ObjectKeyFromObject(obj), to.GroupVersion(), err)
	}
	converted.GetObjectKind().SetGroupVersionKind(to)
	return converted, nil
}

// typed returns an empty typed object.
func (b *Boundary) typed(kind schema.GroupVersionKind) (client.Object, error) {
	created, err := b.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	obj, ok := created.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", created)
	}
	return obj, nil
}

// named returns an object in the stored version and the form of another one, of which only the name is set: for requests whose content is
// elsewhere, and for responses.
func (t *translation) named(like client.Object) (client.Object, error) {
	obj, err := t.empty(t.stored, like)
	if err != nil {
		return nil, err
	}
	obj.SetName(like.GetName())
	obj.SetNamespace(like.GetNamespace())
	return obj, nil
}

// empty returns an empty object of a kind in the form of another one.
func (b *Boundary) empty(kind schema.GroupVersionKind, like client.Object) (client.Object, error) {
	switch like.(type) {
	case *metav1.PartialObjectMetadata:
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(kind)
		return obj, nil
	case *unstructured.Unstructured:
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(kind)
		return obj, nil
	}
	return b.typed(kind)
}

// emptyList returns an empty list in the stored version and the form of another one.
func (t *translation) emptyList(like client.ObjectList) (client.ObjectList, error) {
	kind := t.stored.GroupVersion().WithKind(t.stored.Kind + "List")
	switch like.(type) {
	case *metav1.PartialObjectMetadataList:
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		return list, nil
	case *unstructured.UnstructuredList:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		return list, nil
	}
	created, err := t.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	list, ok := created.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is not a list of objects", created)
	}
	return list, nil
}

// isTyped reports whether an object has a Go type of its own.
func isTyped(obj runtime.Object) bool {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return false
	}
	return true
}

// fillList sets the items of a list to those of a list in the stored version. convert returns nil for items to leave out.
func fillList(list, stored runtime.Object, convert func(client.Object) (client.Object, error)) error {
	items := make([]runtime.Object, 0, meta.LenList(stored))
	err := meta.EachListItem(stored, func(item runtime.Object) error {
		obj, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is not an object", item)
		}
		converted, err := convert(obj)
		if err == nil && converted != nil {
			items = append(items, converted)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := meta.SetList(list, items); err != nil {
		return err
	}
	from, err := meta.ListAccessor(stored)
	if err != nil {
		return err
	}
	to, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetContinue(from.GetContinue())
	to.SetRemainingItemCount(from.GetRemainingItemCount())
	return nil
}
