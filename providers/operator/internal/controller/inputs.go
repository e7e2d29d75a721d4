package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/providers/operator/internal/source"
)

// inputs knows the versions of the Secrets and ConfigMaps that the provider objects of a kind refer to. Each is watched by itself, and only
// its metadata: a management cluster has a Secret or more per Machine.
type inputs struct {
	// open starts to watch an input until the context ends, and calls changed after each change.
	open func(ctx context.Context, in source.Input, changed func()) (client.Reader, error)

	mu sync.Mutex
	// watch opens an input for an object. It is set when the controller starts.
	watch func(of reconcile.Request, in source.Input) (*watched, error)
	// all are the inputs of each object.
	all map[reconcile.Request]map[source.Input]*watched
}

// watched is an input that is watched.
type watched struct {
	client.Reader
	stop context.CancelFunc
}

func newInputs(open func(ctx context.Context, in source.Input, changed func()) (client.Reader, error)) *inputs {
	return &inputs{open: open, all: map[reconcile.Request]map[source.Input]*watched{}}
}

// start is the source of reconciles after changes.
func (i *inputs) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.watch = func(of reconcile.Request, in source.Input) (*watched, error) {
		ctx, stop := context.WithCancel(ctx)
		reader, err := i.open(ctx, in, func() { queue.Add(of) })
		if err != nil {
			stop()
			return nil, fmt.Errorf("watching %s %s/%s: %w", in.Kind, in.Namespace, in.Name, err)
		}
		return &watched{reader, stop}, nil
	}
	return nil
}

// versions identifies the contents of what a provider object refers to. It watches it from now on, and no longer what the object
// referred to before.
func (i *inputs) versions(ctx context.Context, p providerobject.Provider) (string, error) {
	readers, list, err := i.follow(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)}, source.Inputs(p))
	if err != nil {
		return "", err
	}
	var parts []string
	for n, in := range list {
		found, err := versionsOf(ctx, readers[n], in)
		if err != nil {
			return "", fmt.Errorf("reading the version of %s %s/%s: %w", in.Kind, in.Namespace, in.Name, err)
		}
		parts = append(parts, found...)
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n"), nil
}

// follow watches the inputs in the list, and no others of an object.
func (i *inputs) follow(of reconcile.Request, list []source.Input) ([]client.Reader, []source.Input, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.watch == nil {
		return nil, nil, errors.New("the controller has not started")
	}
	for in, w := range i.all[of] {
		if !slices.Contains(list, in) {
			w.stop()
			delete(i.all[of], in)
		}
	}
	var readers []client.Reader
	for _, in := range list {
		w := i.all[of][in]
		if w == nil {
			var err error
			if w, err = i.watch(of, in); err != nil {
				return nil, nil, err
			}
			if i.all[of] == nil {
				i.all[of] = map[source.Input]*watched{}
			}
			i.all[of][in] = w
		}
		readers = append(readers, w)
	}
	return readers, list, nil
}

// forget ends the watches of an object.
func (i *inputs) forget(p providerobject.Provider) {
	i.mu.Lock()
	defer i.mu.Unlock()
	of := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)}
	for _, w := range i.all[of] {
		w.stop()
	}
	delete(i.all, of)
}

// versionsOf returns the versions of the objects of an input.
func versionsOf(ctx context.Context, r client.Reader, in source.Input) ([]string, error) {
	version := func(m *metav1.PartialObjectMetadata) string {
		return strings.Join([]string{in.Kind, m.Namespace, m.Name, string(m.UID), m.ResourceVersion}, " ")
	}
	if in.Name != "" {
		m := CachedMetadata(in.GroupVersionKind())
		if err := r.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: in.Name}, m); err != nil {
			return nil, ignoreMissing(err)
		}
		return []string{version(m)}, nil
	}
	selector, err := in.Labels()
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(in.GroupVersionKind().GroupVersion().WithKind(in.Kind + "List"))
	if err := r.List(ctx, list, client.InNamespace(in.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	var parts []string
	for n := range list.Items {
		parts = append(parts, version(&list.Items[n]))
	}
	return parts, nil
}

// ignoreMissing returns nil for an object that does not exist: the step that reads it says what to do.
func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// watchInput returns a function that watches an input through a cache that has nothing else.
func watchInput(mgr ctrl.Manager) func(ctx context.Context, in source.Input, changed func()) (client.Reader, error) {
	return func(ctx context.Context, in source.Input, changed func()) (client.Reader, error) {
		only := cache.Config{Transform: Lean}
		if in.Name != "" {
			only.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, in.Name)
		} else {
			selector, err := in.Labels()
			if err != nil {
				return nil, err
			}
			only.LabelSelector = selector
		}
		c, err := cache.New(mgr.GetConfig(), cache.Options{
			HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
			DefaultNamespaces: map[string]cache.Config{in.Namespace: only},
		})
		if err != nil {
			return nil, err
		}
		informer, err := c.GetInformer(ctx, CachedMetadata(in.GroupVersionKind()))
		if err != nil {
			return nil, err
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(_ any, isInInitialList bool) {
				if !isInInitialList { // The caller reads these.
					changed()
				}
			},
			UpdateFunc: func(any, any) { changed() },
			DeleteFunc: func(any) { changed() },
		})
		if err != nil {
			return nil, err
		}
		go func() {
			if err := c.Start(ctx); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Watching what a provider object refers to has failed", "kind", in.Kind)
			}
		}()
		if !c.WaitForCacheSync(ctx) {
			return nil, ctx.Err()
		}
		return c, nil
	}
}
