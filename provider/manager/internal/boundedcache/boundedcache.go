// Package boundedcache is the cache of managers: reads of kinds whose objects cannot be listed fail after a short wait, instead of
// blocking workers.
package boundedcache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long reads of a kind wait, all together, for the first list of its objects: long enough for
// thousands of them, and short enough that a manager hardly stands still.
const patience = 5 * time.Second

// NewCache makes the cache of a manager that reads objects of providers. A kind that cannot be listed, because the
// provider grants nobody the right to do so or because its conversion webhook is down, is an error of whoever reads
// it, soon, and then at once: a read that waits for the list holds a worker, and with as many objects of such a kind
// as there are workers, those of all other providers would wait with them. The list goes on being tried. When it
// arrives, watches of the kind (Watcher) wake those concerned.
func New(config *rest.Config, options cache.Options) (cache.Cache, error) {
	c, err := cache.New(config, options)
	if err != nil {
		return nil, err
	}
	return newPrompt(c, clock.RealClock{}), nil
}

// prompt is a cache whose reads of unstructured objects do not wait for ever.
type prompt struct {
	cache.Cache
	clock clock.PassiveClock

	mu    sync.Mutex
	until map[schema.GroupVersionKind]time.Time // when patience with kinds that are not listed yet ends
}

func newPrompt(c cache.Cache, clock clock.PassiveClock) *prompt {
	return &prompt{Cache: c, clock: clock, until: map[schema.GroupVersionKind]time.Time{}}
}

// Get reads an object.
func (p *prompt) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	obj, ok := into.(*unstructured.Unstructured)
	if !ok {
		return p.Cache.Get(ctx, key, into, opts...)
	}
	return p.read(ctx, obj.GroupVersionKind(), func(ctx context.Context) error {
		return p.Cache.Get(ctx, key, into, opts...)
	})
}

// List reads objects.
func (p *prompt) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
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

// read does what asks for objects of a kind, in the time that is left for it.
func (p *prompt) read(ctx context.Context, kind schema.GroupVersionKind, do func(context.Context) error) error {
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
	return fmt.Errorf("%s in version %s cannot be read: listing its objects did not succeed yet. Look whether the manager's "+
		"account may list and watch it (a provider grants that with a ClusterRole that is aggregated to the manager's), "+
		"and whether the API server can serve it: %w", kind.GroupKind(), kind.Version, err)
}

func (p *prompt) forget(kind schema.GroupVersionKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.until, kind)
}

// left is how long a read may still wait for the first list of a kind.
func (p *prompt) left(kind schema.GroupVersionKind) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	if _, known := p.until[kind]; !known {
		p.until[kind] = now.Add(patience)
	}
	return p.until[kind].Sub(now)
}
