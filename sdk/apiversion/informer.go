package apiversion

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// watchEnds is how much earlier than its timeout a watch may end without a reason.
	watchEnds = 2 * time.Second
	// retryAfter is how soon a list after another one that failed is a retry.
	retryAfter = time.Minute
)

// listerWatcher lists and watches a kind in its stored version. An object that cannot be converted must not end the watch of all others:
// the informer keeps the last copy that could be, because without one, controllers would take the object for deleted. It is too old for
// writes that require its resource version.
type listerWatcher struct {
	*informers
	inner    toolscache.ListerWatcherWithContext
	kind     schema.GroupVersionKind
	example  client.Object
	lastGood toolscache.Store

	mu sync.Mutex
	// until is when the last watch ends if its definition does not change. An earlier request is a reason to look up the stored version.
	until time.Time
	// unsure is whether it is looked up once more: API servers end watches before discovery has the change.
	unsure bool
	failed map[string]string // the errors of objects that cannot be converted, by key
}

// List implements toolscache.Lister.
func (w *listerWatcher) List(o metav1.ListOptions) (runtime.Object, error) {
	return w.ListWithContext(context.Background(), o)
}

// Watch implements toolscache.Watcher.
func (w *listerWatcher) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return w.WatchWithContext(context.Background(), o)
}

// ListWithContext implements toolscache.ListerWithContext.
func (w *listerWatcher) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	t, err := w.begin(ctx, retryAfter)
	if err != nil {
		return nil, err
	}
	var list runtime.Object
	if t == nil {
		list, err = w.inner.ListWithContext(ctx, o)
	} else {
		list, err = w.list(ctx, t, o)
	}
	if err == nil {
		w.expect(0)
	}
	return list, err
}

// WatchWithContext implements toolscache.WatcherWithContext.
func (w *listerWatcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	timeout := time.Duration(ptr.Deref(o.TimeoutSeconds, 0))*time.Second - watchEnds
	t, err := w.begin(ctx, timeout)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return w.inner.WatchWithContext(ctx, o)
	}
	events, err := w.inner.WatchWithContext(t.redirect().into(ctx), o)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(e watch.Event) (watch.Event, bool) { return w.event(ctx, t, e) }), nil
}

// redirect returns how requests get to the stored version.
func (t *translation) redirect() *redirect {
	return &redirect{from: t.code.GroupVersion(), to: t.stored.GroupVersion()}
}

// begin returns how to convert objects. A request before the end of the previous one follows a failure, or a change of the definition.
func (w *listerWatcher) begin(ctx context.Context, timeout time.Duration) (*translation, error) {
	now := w.boundary.clock.Now()
	w.mu.Lock()
	early := now.Before(w.until)
	again := early || w.unsure
	w.until, w.unsure = now.Add(timeout), early
	w.mu.Unlock()
	if again {
		if err := w.boundary.stored.refresh(ctx, w.kind.GroupKind()); err != nil && !meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("looking up the stored version of %s: %w", w.kind.GroupKind(), err)
		}
	}
	return w.boundary.of(ctx, w.kind)
}

// expect sets when the next request is due.
func (w *listerWatcher) expect(after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = w.boundary.clock.Now().Add(after)
}

// list lists objects of the stored version, and converts them.
func (w *listerWatcher) list(ctx context.Context, t *translation, o metav1.ListOptions) (runtime.Object, error) {
	if !isTyped(w.example) {
		list, err := w.inner.ListWithContext(t.redirect().into(ctx), o)
		if err != nil {
			return nil, err
		}
		return list, fillList(list, list, func(item client.Object) (client.Object, error) { return w.item(ctx, t, item), nil })
	}
	to, uri := t.redirect(), ""
	to.located = &uri
	if _, err := w.inner.ListWithContext(to.into(ctx), o); uri == "" {
		return nil, err
	}
	stored, err := w.boundary.scheme.New(t.stored.GroupVersion().WithKind(t.stored.Kind + "List"))
	if err != nil {
		return nil, err
	}
	requests, err := w.client(t.stored)
	if err != nil {
		return nil, err
	}
	if err := requests.Get().RequestURI(uri).Do(ctx).Into(stored); err != nil {
		return nil, err
	}
	list, err := w.boundary.scheme.New(t.code.GroupVersion().WithKind(t.code.Kind + "List"))
	if err != nil {
		return nil, err
	}
	return list, fillList(list, stored, func(item client.Object) (client.Object, error) { return w.item(ctx, t, item), nil })
}

// item returns an object of a list; the last good copy if it cannot be converted, or nil.
func (w *listerWatcher) item(ctx context.Context, t *translation, stored client.Object) client.Object {
	if converted := w.convert(ctx, t, stored); converted != nil {
		return converted
	}
	return w.last(stored)
}

// event converts an event. It returns false for events to leave out.
func (w *listerWatcher) event(ctx context.Context, t *translation, e watch.Event) (watch.Event, bool) {
	stored, ok := e.Object.(client.Object)
	if !ok || e.Type == watch.Error {
		return e, true
	}
	var obj client.Object
	switch e.Type {
	case watch.Bookmark:
		obj = w.bare(t, metav1.ObjectMeta{ResourceVersion: stored.GetResourceVersion(), Annotations: stored.GetAnnotations()})
	case watch.Deleted:
		if obj = w.item(ctx, t, stored); obj == nil {
			obj = w.bare(t, metav1.ObjectMeta{
				Name: stored.GetName(), Namespace: stored.GetNamespace(), UID: stored.GetUID(), ResourceVersion: stored.GetResourceVersion(),
			})
		}
		w.succeeded(stored)
	case watch.Added:
		obj = w.item(ctx, t, stored) // A new list of objects may come as events, too.
	default:
		obj = w.convert(ctx, t, stored)
	}
	if obj == nil {
		return e, false
	}
	e.Object = obj
	return e, true
}

// bare returns an object of which only metadata is set.
func (w *listerWatcher) bare(t *translation, metadata metav1.ObjectMeta) client.Object {
	obj, err := t.empty(t.code, w.example)
	if err != nil {
		return nil
	}
	obj.SetName(metadata.Name)
	obj.SetNamespace(metadata.Namespace)
	obj.SetUID(metadata.UID)
	obj.SetResourceVersion(metadata.ResourceVersion)
	obj.SetAnnotations(metadata.Annotations)
	return obj
}

// convert converts an object that nothing else refers to. If that fails, it logs the error, and returns nil.
func (w *listerWatcher) convert(ctx context.Context, t *translation, stored client.Object) client.Object {
	if metadata, ok := stored.(*metav1.PartialObjectMetadata); ok {
		metadata.SetGroupVersionKind(t.code)
		return metadata
	}
	typed := isTyped(stored)
	if typed {
		stored.GetObjectKind().SetGroupVersionKind(t.stored) // So that no copy is necessary.
	}
	converted, err := t.Boundary.convert(ctx, stored, t.stored, t.code)
	if err != nil {
		w.failure(stored, err)
		return nil
	}
	w.succeeded(stored)
	if typed {
		converted.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // Decoded objects have none.
	}
	return converted
}

// last returns a copy of the last object that could be converted; nil if there is none.
func (w *listerWatcher) last(stored client.Object) client.Object {
	found, exists, err := w.lastGood.GetByKey(keyOf(stored))
	obj, ok := found.(client.Object)
	if err != nil || !exists || !ok || obj.GetUID() != stored.GetUID() {
		return nil
	}
	obj, _ = obj.DeepCopyObject().(client.Object)
	return obj
}

// failure logs why an object cannot be converted, once for each reason.
func (w *listerWatcher) failure(obj client.Object, err error) {
	key := keyOf(obj)
	w.mu.Lock()
	known := w.failed[key] == err.Error()
	w.failed[key] = err.Error()
	w.mu.Unlock()
	if !known {
		w.boundary.log.Error(err, "Controllers have an old copy of the object, or none: it cannot be converted", "kind", w.kind.String(),
			"object", key)
	}
}

// succeeded forgets why an object could not be converted.
func (w *listerWatcher) succeeded(obj client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.failed) > 0 {
		delete(w.failed, keyOf(obj))
	}
}

// keyOf returns the key of an object in the store of an informer.
func keyOf(obj client.Object) string { return toolscache.MetaObjectToName(obj).String() }
