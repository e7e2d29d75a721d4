package claim

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// changes drops updates of conditions alone. They are this controller's, and errors may differ each time, for example by port
// numbers: every failure would trigger the next one immediately, and the backoff would soon be minutes.
func changes() predicate.Predicate {
	read := func(c *ipamv1.IPAddressClaim) any {
		meta := c.ObjectMeta
		meta.ResourceVersion, meta.ManagedFields = "", nil
		return []any{meta, c.Status.AddressRef}
	}
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Resynced(), watch.Updated(func(before, after *ipamv1.IPAddressClaim) bool {
		return !equality.Semantic.DeepEqual(read(before), read(after))
	}))
}

// poolEvents enqueues the claims that an event of a pool concerns: those with a new reservation, or all that wait if the reason to wait
// changes.
func (c *Controller) poolEvents(kind string) handler.EventHandler {
	all := func(ctx context.Context, obj client.Object, q queue) {
		c.enqueueWaiting(ctx, poolref.Key{Kind: kind, NamespacedName: client.ObjectKeyFromObject(obj)}, q)
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { all(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { all(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(poolref.Pool)
			if !ok {
				return
			}
			after, ok := e.ObjectNew.(poolref.Pool)
			if !ok {
				return
			}
			if reasonToWait(before) != reasonToWait(after) {
				all(ctx, after, q)
			}
			for _, key := range newlyReserved(before, after) {
				q.Add(reconcile.Request{NamespacedName: key})
			}
		},
	}
}

// reasonToWait returns what determines the condition of claims that wait.
func reasonToWait(p poolref.Pool) any {
	notReady := condition.IsFalse(p, clusterv1.ReadyV1Beta1Condition)
	return [5]bool{isExhausted(p), isBusy(p), isPaused(p), notReady, p.GetDeletionTimestamp().IsZero()}
}

// newlyReserved returns the claims that have a reservation only after a change.
func newlyReserved(before, after poolref.Pool) []types.NamespacedName {
	known := map[types.UID]bool{}
	for _, r := range ptr.Deref(before.PoolStatus().Reservations, inclusterv1.Reservations{}).Items {
		known[r.UID] = true
	}
	var keys []types.NamespacedName
	for _, r := range ptr.Deref(after.PoolStatus().Reservations, inclusterv1.Reservations{}).Items {
		if !known[r.UID] {
			keys = append(keys, types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
		}
	}
	return keys
}

// enqueueWaiting enqueues the claims of a pool that have no address.
func (c *Controller) enqueueWaiting(ctx context.Context, key poolref.Key, q queue) {
	claims, err := poolref.Claims(ctx, c.Client, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the IPAddressClaims to reconcile for an event", "pool", key.String())
		return
	}
	for i := range claims {
		if claims[i].Status.AddressRef.Name == "" {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&claims[i])})
		}
	}
}
