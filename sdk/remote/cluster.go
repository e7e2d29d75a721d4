package remote

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"sigs.k8s.io/cluster-api/sdk/internal/tenure"
)

// Cluster is a connected workload cluster.
type Cluster struct {
	// Client reads cached kinds from the cache, all others live, and writes.
	client.Client
	// Live reads from the API server, cached kinds, too.
	Live client.Reader
	// Config is for clients of other protocols. It must not be modified.
	Config *rest.Config

	// Dialer connects to the cluster's API server, and only to addresses that the Policy allows. It is for libraries that open
	// their own connections and ignore Config.Dial. Nil, in tests, allows all.
	Dialer *net.Dialer

	// http has the limits of all requests. Nil in tests.
	http   *http.Client
	stores map[schema.GroupVersionKind]*store
	end    context.CancelCauseFunc
	ended  context.Context //nolint:containedctx // The lifetime of the connection, which is longer than that of calls.
	// answers is how often watches have received something, at most once per checkInterval; checked is when they last did.
	answers, checked atomic.Uint64
	clock            clock.PassiveClock
	// silent ends the connection when no watch has received anything for too long.
	silent clock.Timer
}

// dial connects and fills the cache. The connection lasts until ctx ends or one of its watches fails.
func dial(ctx context.Context, kubeconfig []byte, o Options) (*Cluster, error) {
	config, err := configOf(kubeconfig, o.Policy)
	if err != nil {
		return nil, err
	}
	config.UserAgent = o.UserAgent
	o.limit(config)
	config.Dial = dialer(config, o.dial)
	config.Wrap(o.Wrap)
	if o.CheckLeader != nil {
		tenure.Guard(config, o.CheckLeader)
	}
	if own := o.selfHosted(ctx, config); own != nil {
		config = own
	}
	ended, end := context.WithCancelCause(ctx)
	c := &Cluster{clock: o.Clock, Config: config, Dialer: o.Policy.netDialer(config), end: end, ended: ended}
	if err := c.open(o); err != nil {
		end(err)
		return nil, err
	}
	return c, nil
}

// limit sets the limit of requests, which all clients of the connection share.
func (o Options) limit(config *rest.Config) {
	config.QPS = -1
	if o.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(o.QPS, o.Burst)
	}
}

func (c *Cluster) open(o Options) error {
	connection, err := newTransport(c.ended, c.Config)
	if err != nil {
		return fmt.Errorf("setting up TLS: %w", err)
	}
	c.silent = o.Clock.AfterFunc(silence, func() { c.end(fmt.Errorf("no watch received anything for %s", silence)) })
	c.silent.Stop() // Filling the cache has its own timeout.
	context.AfterFunc(c.ended, func() { c.silent.Stop() })
	transport := &monitored{transport: connection, end: c.end, heard: c.heard}
	watching := &http.Client{Transport: transport, CheckRedirect: RejectRedirects}
	// Requests share the transport, and so the connection, of the watches, but have a timeout.
	c.http = &http.Client{Transport: transport, CheckRedirect: RejectRedirects, Timeout: requestTimeout}
	mapper, err := newMapper(c.Config, c.http, o.known)
	if err != nil {
		return err
	}
	live, err := client.New(c.Config, client.Options{HTTPClient: c.http, Scheme: o.Scheme, Mapper: mapper})
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	if c.stores, err = newStores(o, mapper); err != nil {
		return err
	}
	c.Live = live
	c.Client = &readThrough{Client: live, cached: c.stores}
	return c.fill(watching, o)
}

// Clientset returns a typed client that shares the connection. It has no cache, and its requests end after timeout.
func (c *Cluster) Clientset(timeout time.Duration) (kubernetes.Interface, error) {
	if c.http == nil {
		return kubernetes.NewForConfig(c.Config)
	}
	bounded := *c.http
	bounded.Timeout = timeout
	return kubernetes.NewForConfigAndClient(c.Config, &bounded)
}

func newStores(o Options, mapper meta.RESTMapper) (map[schema.GroupVersionKind]*store, error) {
	stores := map[schema.GroupVersionKind]*store{}
	for _, k := range o.Cached {
		gvk, err := apiutil.GVKForObject(k.Object, o.Scheme)
		if err != nil {
			return nil, fmt.Errorf("caching %T: %w", k.Object, err)
		}
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, fmt.Errorf("caching %T: %w", k.Object, err)
		}
		stores[gvk] = newStore(k, gvk, mapping, o.pool)
	}
	return stores, nil
}

// heard restarts the timer of a connection because a watch received something. Without watches, there is nothing to be silent.
func (c *Cluster) heard() {
	if len(c.stores) == 0 {
		return
	}
	c.silent.Reset(silence)
	now, last := uint64(c.clock.Now().Unix()), c.checked.Load()
	if now-last >= checkInterval && c.checked.CompareAndSwap(last, now) {
		c.answers.Add(1)
	}
}

// fill starts all watches and waits until the cache is filled.
func (c *Cluster) fill(watching *http.Client, o Options) error {
	for gvk, s := range c.stores {
		from, err := apiutil.RESTClientForGVK(gvk, false, false, c.Config, o.codecs, watching)
		if err != nil {
			return fmt.Errorf("watching %s: %w", gvk.Kind, err)
		}
		go s.follow(c.ended, from, o.Clock, c.end)
	}
	limit, cancel := context.WithTimeout(c.ended, syncTimeout)
	defer cancel()
	for _, s := range c.stores {
		select {
		case <-s.filled:
		case <-limit.Done():
			if cause := context.Cause(c.ended); cause != nil {
				return cause
			}
			return fmt.Errorf("filling the cache took more than %s", syncTimeout)
		}
	}
	if len(c.stores) > 0 {
		c.heard()
	}
	return nil
}

// wait waits until the connection ends, and returns the reason.
func (c *Cluster) wait() error {
	<-c.ended.Done()
	return context.Cause(c.ended)
}

// subscribe calls a listener for all objects of a cached kind, and for every change.
func (c *Cluster) subscribe(obj client.Object, l listener) error {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return err
	}
	s := c.stores[gvk]
	if s == nil {
		return fmt.Errorf("%s is not cached", gvk.Kind)
	}
	s.listen(l)
	return nil
}
