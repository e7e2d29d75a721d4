package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cluster is a connected workload cluster.
type Cluster struct {
	// Client reads cached kinds from the cache, all others live, and writes.
	client.Client
	// Config is for clients of other protocols. Do not change it.
	Config *rest.Config

	cache cache.Cache
	end   context.CancelCauseFunc
	ended context.Context
	// silent ends the connection when it fires.
	silent clock.Timer
}

// dial connects and fills the cache. The connection lives until ctx ends or a watch over it breaks.
func dial(ctx context.Context, kubeconfig []byte, o Options) (*Cluster, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, errors.New("the kubeconfig cannot be parsed") // the cause could quote credentials
	}
	config.UserAgent = o.UserAgent
	config.QPS = -1
	ended, end := context.WithCancelCause(ctx)
	c := &Cluster{Config: config, end: end, ended: ended}
	if err := c.open(o); err != nil {
		end(err)
		return nil, err
	}
	return c, nil
}

func (c *Cluster) open(o Options) error {
	watching, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return fmt.Errorf("setting up TLS: %w", err)
	}
	c.silent = o.Clock.AfterFunc(silence, func() { c.end(fmt.Errorf("it has sent nothing for %s", silence)) })
	c.silent.Stop() // Filling the cache, which comes first, has a limit of its own.
	context.AfterFunc(c.ended, func() { c.silent.Stop() })
	watching.Transport = &attentive{transport: watching.Transport, refused: c.end, heard: c.heard}
	mapper, err := newMapper(c.Config, watching, o.known)
	if err != nil {
		return err
	}
	kinds := map[client.Object]cache.ByObject{}
	for _, k := range o.Cached {
		kinds[k.Object] = k.Options
	}
	c.cache, err = cache.New(c.Config, cache.Options{
		HTTPClient: watching, Scheme: o.Scheme, Mapper: mapper, ByObject: kinds,
		DefaultTransform:         cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: c.watchFailed,
		NewInformer:              newInformer,
	})
	if err != nil {
		return fmt.Errorf("making a cache: %w", err)
	}
	// Requests share the transport, and so the connection, of the watches, but end after a while.
	asking := &http.Client{Transport: watching.Transport, Timeout: requestTimeout}
	live, err := client.New(c.Config, client.Options{HTTPClient: asking, Scheme: o.Scheme, Mapper: mapper})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	c.Client = cachedFor(live, c.cache, o)
	return c.fill(o.Cached)
}

// newInformer lists before it watches. A watch that begins with all there is ends that part with a bookmark, and for this
// a client waits in vain if the API server does not know such watches and ignores what asks for them, as that of v1.7's
// in-memory provider does.
func newInformer(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	if plain, ok := lw.(*toolscache.ListWatch); ok {
		lw = toolscache.ToListWatcherWithWatchListSemantics(plain, listFirst{})
	}
	return toolscache.NewSharedIndexInformer(lw, obj, resync, indexers)
}

// listFirst is a client, as far as reflectors ask it.
type listFirst struct{}

// IsWatchListSemanticsUnSupported says that lists do not come as watches.
func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }

// attentive notices that nothing listens where the cluster was, and that what listens is dumb. Watches alone would not
// tell: they wait for as long as that lasts, with a cache that grows old.
type attentive struct {
	transport http.RoundTripper
	refused   context.CancelCauseFunc
	heard     func()
}

// RoundTrip implements http.RoundTripper.
func (a *attentive) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.transport.RoundTrip(r)
	if utilnet.IsConnectionRefused(err) {
		a.refused(err)
	}
	if err == nil && r.URL.Query().Get("watch") == "true" {
		response.Body = &listened{ReadCloser: response.Body, heard: a.heard}
	}
	return response, err
}

// heard puts off the end of a connection whose watches are silent.
func (c *Cluster) heard() { c.silent.Reset(silence) }

// listened is the body of a watch.
type listened struct {
	io.ReadCloser
	heard func()
}

// Read implements io.Reader.
func (l *listened) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if n > 0 {
		l.heard()
	}
	return n, err
}

// watchFailed ends the connection when a watch cannot be kept up; a history that is too old, or a server
// that ends a watch, are business as usual.
func (c *Cluster) watchFailed(_ context.Context, _ *toolscache.Reflector, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return
	}
	c.end(fmt.Errorf("watching: %w", err))
}

// fill starts the cache and waits until it holds all cached kinds.
func (c *Cluster) fill(kinds []Cached) error {
	for _, k := range kinds {
		if _, err := c.cache.GetInformer(c.ended, k.Object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watching %T: %w", k.Object, err)
		}
		for field, index := range k.Indexes {
			if err := c.cache.IndexField(c.ended, k.Object, field, index); err != nil {
				return fmt.Errorf("indexing %T by %s: %w", k.Object, field, err)
			}
		}
	}
	go func() {
		if err := c.cache.Start(c.ended); err != nil {
			c.end(err)
		}
	}()
	ctx, cancel := context.WithTimeout(c.ended, syncTimeout)
	defer cancel()
	if c.cache.WaitForCacheSync(ctx) {
		if len(kinds) > 0 {
			c.heard()
		}
		return nil
	}
	if cause := context.Cause(c.ended); cause != nil {
		return cause
	}
	return fmt.Errorf("filling the cache took more than %s", syncTimeout)
}

// wait blocks until the connection ends and says why.
func (c *Cluster) wait() error {
	<-c.ended.Done()
	return context.Cause(c.ended)
}

// subscribe calls handle for every event of a cached kind, those that are in the cache now included.
func (c *Cluster) subscribe(obj client.Object, handler toolscache.ResourceEventHandler) error {
	informer, err := c.cache.GetInformer(c.ended, obj)
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(handler)
	return err
}
