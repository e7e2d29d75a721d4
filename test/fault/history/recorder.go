package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// Recorder records all namespaces of an API server. It is safe for concurrent use.
type Recorder struct {
	client dynamic.Interface
	kinds  []Kind

	mu         sync.Mutex
	namespaces map[string]*log
	home       string // the namespace that Adopt was called with
	broken     error
}

// Kind is a kind to record.
type Kind struct {
	schema.GroupVersionResource
	// Namespaced is set if its objects have namespaces.
	Namespaced bool
	// Label is the label that objects must have. Empty: all are recorded.
	Label string
	// Custom is the name of the kind if it is a custom one, whose definition may change while it is watched. Empty: it does not.
	Custom string
	// Defined is set if a CustomResourceDefinition, which may not exist, defines it.
	Defined bool
}

// namespaceKind is the kind whose objects are recorded with those in them.
const namespaceKind = "Namespace"

// log has the events of a namespace.
type log struct {
	events  Timeline
	now     State
	changed chan struct{} // closed at the next event
}

// Record watches all kinds of the product, and Secrets, ConfigMaps and Events, until the context ends.
func Record(ctx context.Context, config *rest.Config) (*Recorder, error) {
	kinds, err := watched(config)
	if err != nil {
		return nil, err
	}
	return RecordKinds(ctx, config, kinds...)
}

// RecordKinds watches some kinds until the context ends.
func RecordKinds(ctx context.Context, config *rest.Config, kinds ...Kind) (*Recorder, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	r := &Recorder{client: client, kinds: kinds, namespaces: map[string]*log{}}
	for _, kind := range kinds {
		version, err := r.list(ctx, kind)
		if err != nil {
			return nil, err
		}
		go r.follow(ctx, kind, version)
	}
	return r, nil
}

// list records the objects of a kind that exist, and returns the version to watch from; "" if the kind does not exist.
func (r *Recorder) list(ctx context.Context, kind Kind) (version string, err error) {
	list, err := r.client.Resource(kind.GroupVersionResource).List(ctx, metav1.ListOptions{LabelSelector: kind.Label})
	if kind.Defined && apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", kind.Resource, err)
	}
	for i := range list.Items {
		r.add(watch.Added, &list.Items[i])
	}
	return list.GetResourceVersion(), nil
}

// Adopt records objects without a namespace with those of this one from now on.
func (r *Recorder) Adopt(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.home = namespace
}

// watched returns the kinds to record, in the API server's preferred versions.
func watched(config *rest.Config) ([]Kind, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := d.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, fmt.Errorf("discovering kinds: %w", err)
	}
	var kinds []Kind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			ours := strings.HasSuffix(version.Group, "cluster.x-k8s.io")
			core := version.Group == "" && slices.Contains([]string{"secrets", "configmaps", "events"}, r.Name)
			if (ours || core) && slices.Contains(r.Verbs, "watch") {
				kind := Kind{GroupVersionResource: version.WithResource(r.Name), Namespaced: true}
				if ours {
					kind.Custom = r.Kind
				}
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds, nil
}

// follow watches one kind, and resumes watches that end.
func (r *Recorder) follow(ctx context.Context, kind Kind, version string) {
	for ctx.Err() == nil {
		if version == "" {
			// An error is that of an API server that does not serve the kind yet, or no longer.
			if version, _ = r.list(ctx, kind); version == "" {
				pause(ctx)
				continue
			}
		}
		w, err := r.client.Resource(kind.GroupVersionResource).Watch(ctx,
			metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true, LabelSelector: kind.Label})
		if err != nil {
			if kind.Defined && apierrors.IsNotFound(err) {
				version = ""
			}
			pause(ctx)
			continue
		}
		for e := range w.ResultChan() {
			o, ok := e.Object.(*unstructured.Unstructured)
			if kind.Defined && e.Type == watch.Error {
				version = "" // Its definition was deleted and created again.
				break
			}
			if e.Type == watch.Error && kind.Custom != "" && apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
				// API servers begin anew with a kind whose definition has changed, as when its CA bundle is written.
				version = r.resume(ctx, kind)
				break
			}
			if !ok || e.Type == watch.Error {
				r.fail(ctx, fmt.Errorf("watching %s from %s: %v", kind.Resource, version, e.Object))
				return
			}
			version = o.GetResourceVersion()
			if e.Type != watch.Bookmark {
				r.add(e.Type, o)
			}
		}
		w.Stop()
	}
}

// resume lists a kind whose watch cannot be continued, and records what has changed in the meantime. It returns the version to watch from;
// "" if that fails.
func (r *Recorder) resume(ctx context.Context, kind Kind) (version string) {
	list, err := r.client.Resource(kind.GroupVersionResource).List(ctx, metav1.ListOptions{LabelSelector: kind.Label})
	if err != nil {
		return ""
	}
	before := r.known(kind.Custom)
	for i := range list.Items {
		o := &list.Items[i]
		old := before[o.GetUID()]
		delete(before, o.GetUID())
		switch {
		case old == nil:
			r.add(watch.Added, o)
		case old.GetResourceVersion() != o.GetResourceVersion():
			r.add(watch.Modified, o)
		}
	}
	for _, gone := range before {
		last := gone.DeepCopy()
		last.SetResourceVersion(list.GetResourceVersion())
		r.add(watch.Deleted, last)
	}
	return list.GetResourceVersion()
}

// known returns the recorded objects of a kind that exist.
func (r *Recorder) known(kind string) map[types.UID]*unstructured.Unstructured {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[types.UID]*unstructured.Unstructured{}
	for _, l := range r.namespaces {
		for _, o := range l.now.Of(kind) {
			found[o.GetUID()] = o
		}
	}
	return found
}

// pause waits before a request is repeated.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

func (r *Recorder) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = err
}

// Err returns why the record is incomplete, or nil.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

func (r *Recorder) log(namespace string) *log {
	l := r.namespaces[namespace]
	if l == nil {
		l = &log{now: State{}, changed: make(chan struct{})}
		r.namespaces[namespace] = l
	}
	return l
}

// add records an event, with the object in v1beta1, which is what invariants read. API servers are asked for the version that they prefer:
// to convert objects, they need the managers, which faults kill.
func (r *Recorder) add(t watch.EventType, o *unstructured.Unstructured) {
	if older, err := conversion.Shared().In(context.Background(), "v1beta1", o); err == nil {
		o = older
	}
	revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return // Resource versions of an API server are numbers.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	namespace := cmp.Or(o.GetNamespace(), r.home)
	if o.GetKind() == namespaceKind {
		namespace = o.GetName() // An earlier one may still be deleted.
	}
	l := r.log(namespace)
	e := Event{Revision: revision, Type: t, Object: o, At: time.Now()}
	l.events = append(l.events, e)
	if t == watch.Deleted {
		delete(l.now, e.Key())
	} else {
		l.now[e.Key()] = o
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// Now returns the state of a namespace, and a channel that is closed when it changes.
func (r *Recorder) Now(namespace string) (State, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.log(namespace)
	now := State{}
	maps.Copy(now, l.now)
	return now, l.changed
}

// Timeline returns the events of a namespace. Call Complete first if none may be missing.
func (r *Recorder) Timeline(namespace string) Timeline {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := slices.Clone(r.log(namespace).events)
	events.Sort()
	return events
}

// Complete waits until the current state of a namespace is recorded. The state must not change meanwhile.
func (r *Recorder) Complete(ctx context.Context, namespace string) error {
	for {
		behind, err := r.behind(ctx, namespace)
		if err != nil || behind == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the record of %s, which lacks %s: %w", namespace, behind, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// behind returns an object whose latest revision is not recorded, or "".
func (r *Recorder) behind(ctx context.Context, namespace string) (string, error) {
	if err := r.Err(); err != nil {
		return "", err
	}
	for _, kind := range r.kinds {
		var objects dynamic.ResourceInterface = r.client.Resource(kind.GroupVersionResource)
		if kind.Namespaced {
			objects = r.client.Resource(kind.GroupVersionResource).Namespace(namespace)
		}
		list, err := objects.List(ctx, metav1.ListOptions{LabelSelector: kind.Label})
		if kind.Defined && apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("listing %s: %w", kind.Resource, err)
		}
		selector, err := labels.Parse(kind.Label)
		if err != nil {
			return "", err
		}
		have := map[string]string{}
		now, _ := r.Now(namespace)
		for key, o := range now {
			if o.GroupVersionKind().Group == kind.Group && key.Kind+"List" == list.GetKind() && selector.Matches(labels.Set(o.GetLabels())) {
				have[key.Name] = o.GetResourceVersion()
			}
		}
		for _, o := range list.Items {
			if o.GetKind() == namespaceKind && o.GetName() != namespace {
				continue
			}
			if have[o.GetName()] != o.GetResourceVersion() {
				return kind.Resource + " " + o.GetName(), nil
			}
			delete(have, o.GetName())
		}
		for name := range have {
			return kind.Resource + " " + name, nil
		}
	}
	return "", nil
}

// Forget drops the record of a namespace.
func (r *Recorder) Forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.namespaces, namespace)
}
