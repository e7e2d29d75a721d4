package external

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// watching is the part of a controller-runtime controller that a Watcher needs.
type watching interface {
	Watch(source source.Source) error
}

// Watcher adds watches to a running controller, one per kind. It is safe for concurrent use.
type Watcher struct {
	controller watching
	informers  cache.Informers

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
}

// NewWatcher returns a Watcher that sends the events of informers to a controller.
func NewWatcher(controller watching, informers cache.Informers) *Watcher {
	return &Watcher{controller: controller, informers: informers, watched: map[schema.GroupVersionKind]bool{}}
}

// Watch sends events of a kind to a handler, if predicates select them. Only the first call for a kind has an effect, so a Watcher has
// one handler per kind; further calls cost a map lookup. Failed calls can be retried.
//
// When Watch returns, the handler is registered, so no change to an object that is read afterwards is missed. (source.Kind registers its
// handler asynchronously.)
//
// Versions of a kind are watched separately: when a provider is upgraded to a new API version, its objects are read and watched in
// that version.
func (w *Watcher) Watch(
	ctx context.Context, kind schema.GroupVersionKind, h handler.EventHandler, predicates ...predicate.Predicate,
) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[kind] {
		return nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	informer, err := w.informers.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching %s: %w", kind, err)
	}
	if err := w.controller.Watch(&source.Informer{Informer: informer, Handler: h, Predicates: predicates}); err != nil {
		return fmt.Errorf("watching %s: %w", kind, err)
	}
	w.watched[kind] = true
	log.FromContext(ctx).V(2).Info("Watching objects of a provider", "kind", kind.String())
	return nil
}
