package watch

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Requests returns requests for the objects that the options select. list is an empty list of their kind. from should be a cache:
// errors are logged, and no requests are returned.
func Requests(ctx context.Context, from client.Reader, list client.ObjectList, which ...client.ListOption) []reconcile.Request {
	return RequestsFor(ctx, from, list, func(client.Object) bool { return true }, which...)
}

// RequestsFor is Requests for objects for which matters returns true.
func RequestsFor[T client.Object](
	ctx context.Context, from client.Reader, list client.ObjectList, matters func(T) bool, which ...client.ListOption,
) []reconcile.Request {
	if err := from.List(ctx, list, which...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the objects to reconcile for an event", "list", fmt.Sprintf("%T", list))
		return nil
	}
	var out []reconcile.Request
	_ = meta.EachListItem(list, func(o runtime.Object) error { // the function never fails
		if item, ok := o.(T); ok && matters(item) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(item)})
		}
		return nil
	})
	return out
}

// Orphaned selects objects that may be adopted: they have no controller, and are not being deleted.
func Orphaned() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return metav1.GetControllerOf(obj) == nil && obj.GetDeletionTimestamp().IsZero()
	})
}
