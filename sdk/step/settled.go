package step

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Settled is Mapped for events that come in bursts, and that no code waits for, such as those of all Machines of a Cluster: an object is
// reconciled this long after the first of them, once for all that have come until then. Other events reconcile it at once, as always.
func Settled(obj client.Object, after time.Duration, concerns handler.MapFunc, events ...predicate.Predicate) Watch {
	return func(b *builder.Builder) *builder.Builder {
		return b.Watches(obj, settled{after: after, concerns: concerns}.handler(), builder.WithPredicates(orAllChanges(events)...))
	}
}

type settled struct {
	after    time.Duration
	concerns handler.MapFunc
}

func (s settled) handler() handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) { s.enqueue(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requestQueue) {
			s.enqueue(ctx, q, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q requestQueue) { s.enqueue(ctx, q, e.Object) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q requestQueue) { s.enqueue(ctx, q, e.Object) },
	}
}

type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueue adds what the objects concern. The queue keeps the earliest time of each request.
func (s settled) enqueue(ctx context.Context, q requestQueue, objects ...client.Object) {
	for _, obj := range objects {
		for _, request := range s.concerns(ctx, obj) {
			q.AddAfter(request, s.after)
		}
	}
}
