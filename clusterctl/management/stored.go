package management

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// stored reads what the API server cannot convert in another version, such as the stored one, and converts it itself: the provider that
// defines a kind also has its conversion webhook, and commands have to tell why that provider is down.
type stored struct{ client.WithWatch }

// Get implements client.Reader.
func (s stored) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := s.WithWatch.Get(ctx, key, obj, opts...)
	if !unconverted(err) {
		return err
	}
	kind, known := conversion.Shared().KindOf(obj)
	if !known {
		return err
	}
	for _, other := range others(kind) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(other)
		if s.WithWatch.Get(ctx, key, u, opts...) == nil {
			return conversion.Shared().Convert(ctx, u, obj)
		}
	}
	return err
}

// List implements client.Reader.
func (s stored) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := s.WithWatch.List(ctx, list, opts...)
	if !unconverted(err) {
		return err
	}
	kind, unknown := s.GroupVersionKindFor(list)
	if unknown != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	for _, other := range others(kind) {
		read := &unstructured.UnstructuredList{}
		read.SetGroupVersionKind(other.GroupVersion().WithKind(other.Kind + "List"))
		if s.WithWatch.List(ctx, read, opts...) == nil {
			return convertList(ctx, read, list, kind)
		}
	}
	return err
}

// convertList sets a list to the objects and the metadata of another, in another version.
func convertList(ctx context.Context, from *unstructured.UnstructuredList, to client.ObjectList, kind schema.GroupVersionKind) error {
	_, untyped := to.(*unstructured.UnstructuredList)
	items := make([]runtime.Object, 0, len(from.Items))
	for i := range from.Items {
		item := &unstructured.Unstructured{Object: map[string]any{}}
		item.SetGroupVersionKind(kind)
		var converted client.Object = item
		if !untyped {
			var err error
			if converted, err = conversion.Shared().NewObject(kind); err != nil {
				return err
			}
		}
		if err := conversion.Shared().Convert(ctx, &from.Items[i], converted); err != nil {
			return err
		}
		items = append(items, converted)
	}
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetContinue(from.GetContinue())
	to.SetRemainingItemCount(from.GetRemainingItemCount())
	return meta.SetList(to, items)
}

// unconverted reports whether a request failed because a conversion webhook did. The API server has no reason of its own for it.
func unconverted(err error) bool {
	return err != nil && strings.Contains(err.Error(), "conversion webhook for ")
}

// others returns a kind in the other versions that this program converts, the newest first.
func others(kind schema.GroupVersionKind) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, version := range conversion.Shared().Versions(kind.GroupKind()) {
		if version != kind.Version {
			out = append(out, kind.GroupKind().WithVersion(version))
		}
	}
	return out
}
