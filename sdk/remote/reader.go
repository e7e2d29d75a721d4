package remote

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Get implements client.Reader. The object is a copy.
func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.mapping.Scope.Name() == meta.RESTScopeNameRoot {
		key.Namespace = ""
	}
	if err := s.holds(key.Namespace); err != nil {
		return err
	}
	stored, found, err := s.objects.GetByKey(toolscache.NewObjectName(key.Namespace, key.Name).String())
	if err != nil {
		return err
	}
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Group: s.gvk.Group, Resource: s.mapping.Resource.Resource}, key.Name)
	}
	obj, err := s.copied(stored)
	if err != nil {
		return err
	}
	target, value := reflect.ValueOf(into).Elem(), reflect.ValueOf(obj).Elem()
	if !value.Type().AssignableTo(target.Type()) {
		return fmt.Errorf("the cache of %s has a %T, not a %T", s.gvk.Kind, obj, into)
	}
	target.Set(value)
	return nil
}

// List implements client.Reader. The objects are copies.
func (s *store) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	if o.Limit != 0 || o.Continue != "" {
		return errors.New("the cache does not support limit and continue")
	}
	if err := s.holds(o.Namespace); err != nil {
		return err
	}
	found, err := s.candidates(o)
	if err != nil {
		return err
	}
	selected := make([]runtime.Object, 0, len(found))
	for _, stored := range found {
		accessor, err := meta.Accessor(stored)
		if err != nil {
			return err
		}
		if o.Namespace != "" && accessor.GetNamespace() != o.Namespace {
			continue
		}
		if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(accessor.GetLabels())) {
			continue
		}
		obj, err := s.copied(stored)
		if err != nil {
			return err
		}
		selected = append(selected, obj)
	}
	return meta.SetList(into, selected)
}

// holds returns an error for a namespace that is not cached.
func (s *store) holds(namespace string) error {
	if s.kind.Namespace == "" || namespace == s.kind.Namespace {
		return nil
	}
	return fmt.Errorf("the cache of %s only has namespace %s, not %q", s.gvk.Kind, s.kind.Namespace, namespace)
}

// candidates returns the objects with the indexed value that the options select, or all.
func (s *store) candidates(o *client.ListOptions) ([]any, error) {
	if o.FieldSelector == nil {
		return s.objects.List(), nil
	}
	required := o.FieldSelector.Requirements()
	if len(required) != 1 || required[0].Operator != selection.Equals && required[0].Operator != selection.DoubleEquals {
		return nil, fmt.Errorf("the cache of %s only supports selecting one value of one field, not %q", s.gvk.Kind, o.FieldSelector)
	}
	return s.objects.ByIndex(fieldIndex(required[0].Field), required[0].Value)
}

// copied returns a copy of a stored object, with its kind, which decoding omits.
func (s *store) copied(stored any) (client.Object, error) {
	obj, ok := stored.(client.Object)
	if !ok {
		return nil, fmt.Errorf("the cache of %s has a %T", s.gvk.Kind, stored)
	}
	obj, _ = obj.DeepCopyObject().(client.Object) // It is of the same type.
	obj.GetObjectKind().SetGroupVersionKind(s.gvk)
	return obj, nil
}
