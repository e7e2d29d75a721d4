package webhooks

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Fixed is a Validator of a kind whose spec cannot be changed, not even while the object is being deleted. A spec is only validated when
// the object is created, so that the finalizers of an invalid one can be removed.
type Fixed[T client.Object] struct {
	// Kind is the kind.
	Kind schema.GroupVersionKind
	// Spec returns the spec.
	Spec func(obj T) any
	// Instead is what to do instead of changing the spec.
	Instead string
	// Wrong returns everything that is wrong with a new object. An error means that it cannot be validated.
	Wrong func(ctx context.Context, obj T) (field.ErrorList, error)
}

// ValidateCreate implements Validator.
func (f Fixed[T]) ValidateCreate(ctx context.Context, obj T) (admission.Warnings, error) {
	all, err := f.Wrong(ctx, obj)
	if err == nil && len(all) > 0 {
		err = apierrors.NewInvalid(f.Kind.GroupKind(), obj.GetName(), all)
	}
	return nil, err
}

// ValidateUpdate implements Validator.
func (f Fixed[T]) ValidateUpdate(_ context.Context, before, after T) (admission.Warnings, error) {
	if equality.Semantic.DeepEqual(f.Spec(before), f.Spec(after)) {
		return nil, nil
	}
	return nil, apierrors.NewInvalid(f.Kind.GroupKind(), after.GetName(), field.ErrorList{
		field.Forbidden(field.NewPath("spec"), "cannot be changed: "+f.Instead),
	})
}

// ValidateDelete implements Validator. Deletion is always allowed.
func (Fixed[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }
