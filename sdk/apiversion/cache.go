package apiversion

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Cache returns options for a cache whose informers list and watch the stored versions, and hold objects in the versions that they are read
// in. o must have Mapper and HTTPClient, as in the NewCache of a manager, and config must be that of the cache.
func (b *Boundary) Cache(config *rest.Config, o cache.Options) cache.Options {
	web := *o.HTTPClient
	web.Transport = redirecting{next: web.Transport}
	o.HTTPClient = &web
	o.Mapper = b.Mapper(o.Mapper)
	i := &informers{boundary: b, config: config, web: &web, next: o.NewInformer, codecs: serializer.NewCodecFactory(b.scheme)}
	if i.next == nil {
		i.next = toolscache.NewSharedIndexInformer
	}
	o.NewInformer = i.create
	return o
}

// newInformer creates an informer.
type newInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// informers creates the informers of a cache.
type informers struct {
	boundary *Boundary
	config   *rest.Config
	web      *http.Client
	codecs   serializer.CodecFactory
	next     newInformer
}

// create creates the informer of a kind.
func (i *informers) create(
	lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	kind, err := apiutil.GVKForObject(obj, i.boundary.scheme)
	example, ok := obj.(client.Object)
	if err != nil || !ok || len(i.boundary.registry.Versions(kind.GroupKind())) == 0 {
		return i.next(lw, obj, resync, indexers)
	}
	w := &listerWatcher{
		informers: i, inner: toolscache.ToListerWatcherWithContext(lw), kind: kind, example: example, failed: map[string]string{},
	}
	informer := i.next(w, obj, resync, indexers)
	w.lastGood = informer.GetIndexer()
	return informer
}

// client returns a client for typed objects of a version.
func (i *informers) client(kind schema.GroupVersionKind) (rest.Interface, error) {
	return apiutil.RESTClientForGVK(kind, false, false, i.config, i.codecs, i.web)
}

// redirect sends the requests of a context to another version.
type redirect struct {
	from, to schema.GroupVersion
	// located is set to where a request would be sent, and the request fails: a list of typed objects is decoded as the type of the version
	// that the request was built for.
	located *string
}

type redirectKey struct{}

// into returns a context for requests that are sent to another version.
func (r *redirect) into(ctx context.Context) context.Context {
	return context.WithValue(ctx, redirectKey{}, r)
}

// errLocated is the error of a request that has been located.
var errLocated = errors.New("located")

// redirecting changes the version in the URLs of requests. The cache of controller-runtime builds these with namespace and selectors, and
// does not show them to informers.
type redirecting struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t redirecting) RoundTrip(request *http.Request) (*http.Response, error) {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	r, ok := request.Context().Value(redirectKey{}).(*redirect)
	if !ok {
		return next.RoundTrip(request)
	}
	request = request.Clone(request.Context())
	request.URL.Path = strings.Replace(request.URL.Path, "/apis/"+r.from.String()+"/", "/apis/"+r.to.String()+"/", 1)
	request.URL.RawPath = ""
	if r.located != nil {
		*r.located = request.URL.RequestURI()
		return nil, errLocated
	}
	return next.RoundTrip(request)
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t redirecting) WrappedRoundTripper() http.RoundTripper { return t.next }
