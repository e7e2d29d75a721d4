package webhooks

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Check returns a Validator that calls one function, which returns all errors. before is nil on creation. Objects that are being deleted
// are not validated, so that their finalizers can always be removed.
func Check[T client.Object](kind schema.GroupVersionKind, wrong func(ctx context.Context, before, after T) field.ErrorList) Validator[T] {
	return check[T]{kind: kind.GroupKind(), wrong: wrong}
}

type check[T client.Object] struct {
	kind  schema.GroupKind
	wrong func(ctx context.Context, before, after T) field.ErrorList
}

// ValidateCreate implements Validator.
func (c check[T]) ValidateCreate(ctx context.Context, obj T) (admission.Warnings, error) {
	var none T
	return c.ValidateUpdate(ctx, none, obj)
}

// ValidateUpdate implements Validator.
func (c check[T]) ValidateUpdate(ctx context.Context, before, after T) (admission.Warnings, error) {
	if after.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	if all := c.wrong(ctx, before, after); len(all) > 0 {
		return nil, apierrors.NewInvalid(c.kind, after.GetName(), all)
	}
	return nil, nil
}

// ValidateDelete implements Validator. Deletion is always allowed.
func (check[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

// Immutable returns an error if a field changes.
func Immutable(path *field.Path, before, after any) field.ErrorList {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "field is immutable")}
}

// TopologyDryRun reports whether a request is a dry run of the topology controller, by which it determines whether a template must be
// rotated. Validators that make templates immutable must allow it.
func TopologyDryRun(ctx context.Context, obj metav1.Object) bool {
	request, err := admission.RequestFromContext(ctx)
	_, annotated := obj.GetAnnotations()[clusterv1.TopologyDryRunAnnotation]
	return err == nil && request.DryRun != nil && *request.DryRun && annotated
}

// WithoutOld returns the errors that the old object does not have: what is wrong and unchanged must not prevent other changes. Positions
// in lists are ignored, because an element may have moved.
func WithoutOld(old, current field.ErrorList) field.ErrorList {
	known := map[string]bool{}
	for _, e := range old {
		known[identity(e)] = true
	}
	var errs field.ErrorList
	for _, e := range current {
		if !known[identity(e)] {
			errs = append(errs, e)
		}
	}
	return errs
}

// identity identifies an error by the field without positions in lists, and by the value.
func identity(e *field.Error) string {
	parts := strings.FieldsFunc(e.Field, func(r rune) bool { return strings.ContainsRune("[]0123456789", r) })
	return strings.Join(parts, "") + fmt.Sprintf("=%v", e.BadValue)
}
