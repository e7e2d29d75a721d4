package snapshot

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// watchSeconds is the timeout of a watch request, below the client's timeout.
const watchSeconds = 25

// Watcher follows objects.
type Watcher struct {
	client client.WithWatch
	// selections returns what to follow when these objects are known, and selector the labels of a selection without name.
	selections func(known *tree.Objects) []tree.Selection
	selector   func(tree.Selection) labels.Selector
	changed    chan struct{}

	mu      sync.Mutex
	sources map[tree.Selection]*source
	err     error
	running sync.WaitGroup
}

// source is the result of one watch.
type source struct {
	store     toolscache.Store
	hasSynced toolscache.InformerSynced
}

// Watch follows the objects of a Cluster until the context ends.
func Watch(ctx context.Context, c client.WithWatch, cluster types.NamespacedName, o tree.Options) *Watcher {
	ofCluster := labels.SelectorFromSet(labels.Set{clusterv1.ClusterNameLabel: cluster.Name})
	return start(ctx, c, func(known *tree.Objects) []tree.Selection { return tree.Selections(cluster, known, o) },
		func(tree.Selection) labels.Selector { return ofCluster })
}

// WatchClusters follows the Clusters of a namespace, all if it is empty, with their control planes and workers, until the context ends.
// selector, which may be nil, selects Clusters by their labels.
func WatchClusters(ctx context.Context, c client.WithWatch, namespace string, selector labels.Selector) *Watcher {
	return start(ctx, c, func(known *tree.Objects) []tree.Selection { return tree.Overview(namespace, known) },
		func(s tree.Selection) labels.Selector {
			if s.Kind == tree.ClusterKind {
				return selector
			}
			return nil
		})
}

func start(ctx context.Context, c client.WithWatch, selections func(*tree.Objects) []tree.Selection,
	selector func(tree.Selection) labels.Selector,
) *Watcher {
	w := &Watcher{
		client: c, selections: selections, selector: selector,
		changed: make(chan struct{}, 1), sources: map[tree.Selection]*source{},
	}
	w.follow(ctx, tree.NewObjects())
	return w
}

// Changed receives a value whenever something has changed since the last receive.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Err returns the error of the last request, nil if it succeeded.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Wait waits until all watches have stopped, after the context has ended.
func (w *Watcher) Wait() { w.running.Wait() }

// Objects returns the known objects. complete reports whether all required objects have been read at least once.
func (w *Watcher) Objects(ctx context.Context) (objects *tree.Objects, complete bool) {
	objects, complete = w.collect()
	if w.follow(ctx, objects) {
		complete = false
	}
	return objects, complete
}

func (w *Watcher) collect() (*tree.Objects, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	objects, complete := tree.NewObjects(), true
	for _, s := range w.sources {
		if s == nil {
			continue
		}
		complete = complete && s.hasSynced()
		for _, item := range s.store.List() {
			if u, ok := item.(*unstructured.Unstructured); ok {
				objects.Add(u)
			}
		}
	}
	return objects, complete
}

// follow starts the watches that the known objects require, and reports whether it started any.
func (w *Watcher) follow(ctx context.Context, known *tree.Objects) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	started := false
	for _, s := range w.selections(known) {
		if _, ok := w.sources[s]; ok {
			continue
		}
		kind, err := Served(w.client.RESTMapper(), s.Kind)
		if meta.IsNoMatchError(err) {
			w.sources[s] = nil
			continue
		}
		w.sources[s] = w.start(ctx, tree.Selection{Kind: kind, Namespace: s.Namespace, Name: s.Name})
		started = true
	}
	return started
}

func (w *Watcher) start(ctx context.Context, s tree.Selection) *source {
	// Errors are returned by Err; logs would garble the terminal.
	logger := logr.Discard()
	store, controller := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		Logger:        &logger,
		ListerWatcher: &requests{w: w, selection: s},
		ObjectType:    &unstructured.Unstructured{},
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { w.notify() },
			UpdateFunc: func(any, any) { w.notify() },
			DeleteFunc: func(any) { w.notify() },
		},
	})
	ctx = klog.NewContext(ctx, logger)
	w.running.Go(func() { controller.RunWithContext(ctx) })
	w.running.Go(func() {
		// An empty list only changes that it has been read.
		if toolscache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
			w.notify()
		}
	})
	return &source{store: store, hasSynced: controller.HasSynced}
}

func (w *Watcher) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *Watcher) result(err error) {
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
	if err != nil {
		w.notify()
	}
}

// requests makes the requests of one watch.
type requests struct {
	w         *Watcher
	selection tree.Selection
}

var (
	_ toolscache.ListerWatcher            = &requests{}
	_ toolscache.ListerWatcherWithContext = &requests{}
)

// IsWatchListSemanticsUnSupported requests separate lists, which every API server and test client supports.
func (r *requests) IsWatchListSemanticsUnSupported() bool { return true }

// List reads all objects.
func (r *requests) List(o metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), o)
}

// Watch reads changes.
func (r *requests) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(context.Background(), o)
}

// ListWithContext reads all objects, and records the error. The user may just have created some: a list of any version, which informers ask
// for first, can be older.
func (r *requests) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.ResourceVersion == "0" {
		o.ResourceVersion = ""
	}
	list := listOf(r.selection)
	err := r.w.client.List(ctx, list, r.options(o))
	if ctx.Err() == nil {
		r.w.result(err)
	}
	return list, err
}

// WatchWithContext starts a watch, and records the error.
func (r *requests) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	seconds := int64(watchSeconds)
	o.TimeoutSeconds = &seconds
	answer, err := r.w.client.Watch(ctx, listOf(r.selection), r.options(o))
	if ctx.Err() == nil {
		r.w.result(err)
	}
	return answer, err
}

func (r *requests) options(raw metav1.ListOptions) client.ListOption {
	o := &client.ListOptions{Namespace: r.selection.Namespace, Raw: &raw}
	if r.selection.Name != "" {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", r.selection.Name)
	} else {
		o.LabelSelector = r.w.selector(r.selection)
	}
	return o
}
