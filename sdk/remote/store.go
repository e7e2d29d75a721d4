package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

const (
	// firstRelist and lastRelist are the limits of the backoff, before jitter, between attempts to list again; after relistReset without
	// one the backoff is reset.
	firstRelist = 800 * time.Millisecond
	lastRelist  = 30 * time.Second
	relistReset = 2 * time.Minute
)

// listener is called for a change: before is nil for a creation, after is nil for a deletion. It must not modify the
// objects, and must not block: the store is only updated after it returned.
type listener func(before, after client.Object)

// store has the objects of one kind of one workload cluster, and calls listeners for changes as
// they are received. An informer does the same with a dozen goroutines, and with a buffer of 16 KiB for each listener: more
// than the whole cache of a small cluster.
type store struct {
	kind      Cached
	gvk       schema.GroupVersionKind
	mapping   *meta.RESTMapping
	objects   toolscache.Indexer
	filled    chan struct{} // closed after the first list
	fillOnce  sync.Once
	changes   sync.Mutex // held during a change and while listeners are called
	listeners []listener
	memory    int64       // that objects take
	allowance allowance   // for memory, and for a list while it is read
	lost      func(error) // ends the connection
}

func newStore(k Cached, gvk schema.GroupVersionKind, mapping *meta.RESTMapping, p *pool) *store {
	indexers := toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}
	for field, values := range k.Indexes {
		indexers[fieldIndex(field)] = func(obj any) ([]string, error) {
			if o, ok := obj.(client.Object); ok {
				return values(o), nil
			}
			return nil, nil
		}
	}
	return &store{
		kind: k, gvk: gvk, mapping: mapping, filled: make(chan struct{}), allowance: allowance{pool: p},
		objects: toolscache.NewIndexer(toolscache.DeletionHandlingMetaNamespaceKeyFunc, indexers),
	}
}

func fieldIndex(field string) string { return "field:" + field }

// follow lists and watches, and calls lost with the reason if that fails.
func (s *store) follow(ctx context.Context, from toolscache.Getter, c clock.Clock, lost func(error)) {
	if err := s.reflect(ctx, from, c, lost); err != nil {
		lost(fmt.Errorf("watching: %w", err))
	}
	_ = s.allowance.take(0) // Taking nothing never fails.
}

func (s *store) reflect(ctx context.Context, from toolscache.Getter, c clock.Clock, lost func(error)) (err error) {
	defer failsafe.Recover("reading a workload cluster", &err)
	s.changes.Lock()
	s.lost = lost
	s.changes.Unlock()
	only := func(o *metav1.ListOptions) {
		if s.kind.Labels != nil {
			o.LabelSelector = s.kind.Labels.String()
		}
	}
	watches := toolscache.NewFilteredListWatchFromClient(from, s.mapping.Resource.Resource, s.kind.Namespace, only)
	source := &listing{store: s, from: from, watches: watches}
	reflector := toolscache.NewReflectorWithOptions(source, s.kind.Object, s, toolscache.ReflectorOptions{Name: "workload cluster"})
	pause := wait.Backoff{Duration: firstRelist, Cap: lastRelist, Factor: 2, Jitter: 1, Steps: 10}.DelayWithReset(c, relistReset).Timer(c)
	defer pause.Stop()
	for ctx.Err() == nil {
		if err := reflector.ListAndWatchWithContext(ctx); err != nil && !usual(err) {
			return err
		}
		pause.Next()
		select {
		case <-ctx.Done():
		case <-pause.C():
		}
	}
	return nil
}

// usual reports whether a watch ended for a normal reason: the resource version is too old, or the server closed it.
func usual(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// listen calls a listener for all present objects, and from then on for changes.
func (s *store) listen(l listener) {
	s.changes.Lock()
	defer s.changes.Unlock()
	for _, o := range s.objects.List() {
		if obj, ok := o.(client.Object); ok {
			l(nil, obj)
		}
	}
	s.listeners = append(s.listeners, l)
}

func (s *store) tell(before, after client.Object) {
	for _, l := range s.listeners {
		l(before, after)
	}
}

// keep returns what is cached of an object.
func (s *store) keep(in any) (client.Object, error) {
	out, err := s.transform(in)
	if err != nil {
		return nil, fmt.Errorf("transforming a %s: %w", s.gvk.Kind, err)
	}
	obj, ok := out.(client.Object)
	if !ok {
		return nil, fmt.Errorf("received a %T instead of a %s", out, s.gvk.Kind)
	}
	return obj, nil
}

func (s *store) transform(in any) (any, error) {
	if obj, ok := in.(client.Object); ok {
		obj.SetManagedFields(nil)
	}
	if s.kind.Transform == nil {
		return in, nil
	}
	return s.kind.Transform(in)
}

// current returns the stored version of an object, or nil.
func (s *store) current(obj any) client.Object {
	stored, found, err := s.objects.Get(obj)
	if err != nil || !found {
		return nil
	}
	o, _ := stored.(client.Object)
	return o
}

// Transformer implements toolscache.TransformingStore, so that lists are transformed while they are received.
func (s *store) Transformer() toolscache.TransformFunc { return s.transform }

// Add implements toolscache.ReflectorStore.
func (s *store) Add(in any) error { return s.Update(in) }

// Update implements toolscache.ReflectorStore.
func (s *store) Update(in any) error {
	obj, err := s.keep(in)
	if err != nil {
		return err
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	before := s.current(obj)
	if !s.affords(memory(obj) - memoryOf(before)) {
		return nil
	}
	if err := s.objects.Update(obj); err != nil {
		return err
	}
	s.tell(before, obj)
	return nil
}

// affords accounts for memory, and ends the connection if it is too much. The caller must hold the lock.
func (s *store) affords(more int64) bool {
	if err := s.allow(s.memory + more); err != nil {
		s.lost(err)
		return false
	}
	s.memory += more
	return true
}

// allow returns an error if a store must not take this much memory.
func (s *store) allow(bytes int64) error {
	if bytes > maxKept {
		return &limitError{What: "all " + s.gvk.Kind + "s", Limit: maxKept}
	}
	return s.allowance.take(bytes)
}

func memoryOf(obj client.Object) int64 {
	if obj == nil {
		return 0
	}
	return memory(obj)
}

// Delete implements toolscache.ReflectorStore.
func (s *store) Delete(in any) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	before := s.current(in)
	if before == nil {
		return nil
	}
	if err := s.objects.Delete(before); err != nil {
		return err
	}
	s.memory -= memory(before)
	_ = s.allowance.take(s.memory) // Taking less never fails.
	s.tell(before, nil)
	return nil
}

// Replace implements toolscache.ReflectorStore.
func (s *store) Replace(list []any, revision string) error {
	kept := make([]any, 0, len(list))
	var taken int64
	for _, in := range list {
		obj, err := s.keep(in)
		if err != nil {
			return err
		}
		taken += memory(obj)
		kept = append(kept, obj)
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	s.memory = taken
	if err := s.allow(taken); err != nil {
		return err
	}
	gone := s.objects.List()
	before := make([]client.Object, len(kept))
	for i, obj := range kept {
		before[i] = s.current(obj)
	}
	if err := s.objects.Replace(kept, revision); err != nil {
		return err
	}
	for i, obj := range kept {
		s.tell(before[i], obj.(client.Object))
	}
	for _, o := range gone {
		if obj, ok := o.(client.Object); ok && s.current(obj) == nil {
			s.tell(obj, nil)
		}
	}
	s.fillOnce.Do(func() { close(s.filled) })
	return nil
}

// Resync implements toolscache.ReflectorStore. It is not needed: listeners are called synchronously.
func (s *store) Resync() error { return nil }
