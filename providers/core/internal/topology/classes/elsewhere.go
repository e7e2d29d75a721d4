package classes

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// readTimeout is how long a read waits for the first list of a kind; without permission there is none.
const readTimeout = 5 * time.Second

// Elsewhere is the ClusterClasses of other namespaces, and their templates, for a manager that watches one namespace. A kind is listed and
// watched from its first read on: a manager whose Clusters have classes of their own namespace does not need the permission.
type Elsewhere struct {
	namespace string
	cache     cache.Cache
	timeout   time.Duration

	mu      sync.Mutex
	watched bool
}

// NewElsewhere returns an Elsewhere for a manager that watches a namespace. newCache returns a cache with options; the Elsewhere, not
// the cache, must be added to the manager.
func NewElsewhere(namespace string, newCache func(cache.Options) (cache.Cache, error)) (*Elsewhere, error) {
	// Copies of templates for a Cluster have the label: there are far more of them than of templates of classes.
	copies, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.DoesNotExist, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting the templates of classes: %w", err)
	}
	c, err := newCache(cache.Options{DefaultLabelSelector: labels.NewSelector().Add(*copies)})
	if err != nil {
		return nil, fmt.Errorf("preparing the cache of ClusterClasses of other namespaces: %w", err)
	}
	return &Elsewhere{namespace: namespace, cache: c, timeout: readTimeout}, nil
}

// Start runs the cache until ctx is done.
func (e *Elsewhere) Start(ctx context.Context) error { return e.cache.Start(ctx) }

// NeedLeaderElection returns false: webhooks read classes in every replica.
func (e *Elsewhere) NeedLeaderElection() bool { return false }

// Informers returns the informers of the cache.
func (e *Elsewhere) Informers() cache.Informers { return e.cache }

// Has reports whether an object with this key is read from the cache.
func (e *Elsewhere) Has(key client.ObjectKey) bool {
	return e != nil && key.Namespace != "" && key.Namespace != e.namespace
}

// Watch sends the events of ClusterClasses of other namespaces to a controller. Only the first call has an effect.
func (e *Elsewhere) Watch(ctx context.Context, add func(source.Source) error, h handler.EventHandler) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watched {
		return nil
	}
	informer, err := e.cache.GetInformer(ctx, &clusterv1.ClusterClass{}, cache.BlockUntilSynced(false))
	if err == nil {
		err = add(&source.Informer{Informer: informer, Handler: h})
	}
	if err != nil {
		return fmt.Errorf("watching ClusterClasses of other namespaces: %w", err)
	}
	e.watched = true
	return nil
}

// Over returns a reader of own that reads ClusterClasses and templates of other namespaces from the cache, and other objects of other
// namespaces from rest. If e is nil, it returns own.
func (e *Elsewhere) Over(own, rest client.Reader) client.Reader {
	if e == nil {
		return own
	}
	return reader{Reader: own, rest: rest, elsewhere: e}
}

type reader struct {
	client.Reader
	rest      client.Reader
	elsewhere *Elsewhere
}

// Get reads an object.
func (r reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if !r.elsewhere.Has(key) {
		return r.Reader.Get(ctx, key, into, opts...)
	}
	kind := "ClusterClass"
	switch o := into.(type) {
	case *clusterv1.ClusterClass:
	case *unstructured.Unstructured:
		if kind = o.GetKind(); !strings.HasSuffix(kind, "Template") {
			return r.rest.Get(ctx, key, into, opts...)
		}
	default:
		return r.rest.Get(ctx, key, into, opts...)
	}
	limited, cancel := context.WithTimeout(ctx, r.elsewhere.timeout)
	defer cancel()
	err := r.elsewhere.cache.Get(limited, key, into, opts...)
	if client.IgnoreNotFound(err) == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%s %s is in another namespace than %s, which the manager has as --namespace: grant its ServiceAccount "+
		"a ClusterRole with the verbs get, list and watch for ClusterClasses and for the kinds of their templates, "+
		"or use a class of namespace %s: %w", kind, key, r.elsewhere.namespace, r.elsewhere.namespace, err)
}

// List lists objects.
func (r reader) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	if r.elsewhere.Has(client.ObjectKey{Namespace: o.Namespace}) {
		return r.rest.List(ctx, into, opts...)
	}
	return r.Reader.List(ctx, into, opts...)
}
