package step

import (
	"cmp"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	visiblePoll = 2 * time.Millisecond
	visibleWait = 5 * time.Second
)

// AwaitVisible waits until an object that was just written is in a cache, so that the next steps and reconciles find it. It gives
// up silently after five seconds: derived names make stale caches harmless, and waiting only makes them rare. written is not
// changed.
func AwaitVisible(ctx context.Context, cached client.Reader, written client.Object) {
	key := client.ObjectKeyFromObject(written)
	seen := written.DeepCopyObject().(client.Object)
	_ = wait.PollUntilContextTimeout(ctx, visiblePoll, visibleWait, true, func(ctx context.Context) (bool, error) {
		if err := cached.Get(ctx, key, seen); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return isAtLeast(seen.GetResourceVersion(), written.GetResourceVersion()), nil
	})
}

// AwaitVisible is the function AwaitVisible for all objects that a reconcile wrote: it waits for all of them together.
func (c Clients) AwaitVisible(ctx context.Context, written ...client.Object) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.VisibleWait, visibleWait))
	defer cancel()
	for _, obj := range written {
		AwaitVisible(ctx, c.Client, obj)
	}
}

// AwaitDeletion waits until a cache shows that an object is being deleted or gone, so that the next reconcile does not work with a
// stale cache. Like AwaitVisible, it gives up silently: a stale cache leads to a conflict. deleted is not changed.
func AwaitDeletion(ctx context.Context, cached client.Reader, deleted client.Object) {
	key := client.ObjectKeyFromObject(deleted)
	seen := deleted.DeepCopyObject().(client.Object)
	_ = wait.PollUntilContextTimeout(ctx, visiblePoll, visibleWait, true, func(ctx context.Context) (bool, error) {
		if err := cached.Get(ctx, key, seen); err != nil {
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}
		return !seen.GetDeletionTimestamp().IsZero() || seen.GetUID() != deleted.GetUID(), nil
	})
}
