package objectcache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listTimeout is how long all reads of a kind wait, together, for its first list: long enough for thousands of objects, and short
// enough not to block a manager.
const listTimeout = 5 * time.Second

// New returns a cache. If a kind cannot be listed, because the provider does not grant the permission or its conversion webhook is
// down, reads of it fail after a short wait, and then immediately. Otherwise each such read would block a worker, until objects of all
// other providers have to wait. The list is retried in the background; when it succeeds, watches of the kind trigger reconciles.
func New(config *rest.Config, options cache.Options) (cache.Cache, error) {
	p := newBounded(nil, clock.RealClock{})
	options.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
		p.listFailed(r.TypeDescription(), err)
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	}
	var err error
	p.Cache, err = cache.New(config, options)
	return p, err
}

// bounded is a cache whose reads of unstructured objects have a timeout.
type bounded struct {
	cache.Cache
	clock clock.PassiveClock

	mu    sync.Mutex
	until map[schema.GroupVersionKind]time.Time // when reads of kinds that are not listed yet stop waiting
	// denied has why kinds may not be listed. Its keys are as in a Reflector's TypeDescription: "example.com/v1, Kind=Foo".
	denied map[string]error
}

func newBounded(c cache.Cache, clock clock.PassiveClock) *bounded {
	return &bounded{Cache: c, clock: clock, until: map[schema.GroupVersionKind]time.Time{}, denied: map[string]error{}}
}

// Get reads an object.
func (p *bounded) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	obj, ok := into.(*unstructured.Unstructured)
	if !ok {
		return p.Cache.Get(ctx, key, into, opts...)
	}
	return p.read(ctx, obj.GroupVersionKind(), func(ctx context.Context) error {
		return p.Cache.Get(ctx, key, into, opts...)
	})
}

// List reads objects.
func (p *bounded) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	list, ok := into.(*unstructured.UnstructuredList)
	if !ok {
		return p.Cache.List(ctx, into, opts...)
	}
	kind := list.GroupVersionKind()
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	return p.read(ctx, kind, func(ctx context.Context) error {
		return p.Cache.List(ctx, into, opts...)
	})
}

// read calls do, with the timeout that is left for the kind.
func (p *bounded) read(ctx context.Context, kind schema.GroupVersionKind, do func(context.Context) error) error {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	informer, err := p.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	if informer.HasSynced() {
		p.forget(kind)
		return do(ctx)
	}
	waiting, done := context.WithTimeout(ctx, p.left(kind))
	defer done()
	if err = do(waiting); err == nil || ctx.Err() != nil || !errors.Is(waiting.Err(), context.DeadlineExceeded) {
		return err
	}
	if denied := p.why(kind); denied != nil {
		err = denied
	}
	return fmt.Errorf("cannot read %s in version %s: its objects have not been listed yet. Check that the manager's ServiceAccount "+
		"may list and watch it (providers grant that with a ClusterRole that is aggregated into the manager's), "+
		"and that the API server can serve it: %w", kind.GroupKind(), kind.Version, err)
}

func (p *bounded) forget(kind schema.GroupVersionKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.until, kind)
	delete(p.denied, kind.String())
}

// listFailed remembers why a kind may not be listed. Other errors pass by themselves.
func (p *bounded) listFailed(kind string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.denied, kind)
	if apierrors.IsForbidden(err) {
		p.denied[kind] = err
	}
}

// why returns why a kind may not be listed, if that is why it is not.
func (p *bounded) why(kind schema.GroupVersionKind) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.denied[kind.String()]
}

// left returns how long a read may still wait for the first list of a kind.
func (p *bounded) left(kind schema.GroupVersionKind) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	if _, known := p.until[kind]; !known {
		p.until[kind] = now.Add(listTimeout)
	}
	return p.until[kind].Sub(now)
}
