package step

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	visiblePoll = 2 * time.Millisecond
	visibleWait = 5 * time.Second
)

// AwaitVisible returns once a cached reader shows an object that was just written, so that what follows,
// the next reconcile included, counts it. It gives up silently after five seconds: derived names make
// acting on an old cache harmless, this only makes it rare. written is left as it is.
func AwaitVisible(ctx context.Context, cached client.Reader, written client.Object) {
	key := client.ObjectKeyFromObject(written)
	seen := written.DeepCopyObject().(client.Object)
	_ = wait.PollUntilContextTimeout(ctx, visiblePoll, visibleWait, true, func(ctx context.Context) (bool, error) {
		if err := cached.Get(ctx, key, seen); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return shows(seen.GetResourceVersion(), written.GetResourceVersion()), nil
	})
}
