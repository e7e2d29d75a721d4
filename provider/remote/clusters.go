package remote

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/crash"
	"sigs.k8s.io/cluster-api/provider/pki"
)

const (
	// firstRetry and lastRetry bound the pause between attempts to connect.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 15 * time.Second
	// refusedRetry is the pause after what was refused, which seldom changes by itself. A changed kubeconfig is tried as
	// soon as a controller asks again, which an event makes it do.
	refusedRetry = 5 * time.Minute
	// syncTimeout bounds how long the first filling of a cache may take.
	syncTimeout = 5 * time.Minute
	// silence is how long all watches of a cluster may say nothing: API servers send a bookmark every minute.
	silence = 150 * time.Second
	// requestTimeout bounds every request but watches.
	requestTimeout = 10 * time.Second
)

// Options configure Clusters.
type Options struct {
	// Secrets is a cache of the kubeconfig Secrets and of Clusters, usually the manager's. The connection to a cluster ends
	// when its Secret is deleted or has another kubeconfig.
	Secrets cache.Cache
	// Scheme knows the kinds that are read from and written to workload clusters.
	Scheme *runtime.Scheme
	// UserAgent names the manager to workload API servers.
	UserAgent string
	// Cached lists the kinds that are cached, with what is kept of them. All other kinds are read live.
	Cached []Cached
	Clock  clock.WithTickerAndDelayedExecution
	// Policy limits what kubeconfigs may ask for.
	Policy Policy

	dial   dialFunc        // nil: what Policy permits
	pool   *pool           // of what is kept of all clusters
	known  meta.RESTMapper // of the kinds in Scheme
	codecs serializer.CodecFactory
}

// Cached is a kind of workload cluster object that is cached.
type Cached struct {
	// Object is an empty object of the kind.
	Object client.Object
	// Namespace is the only one that is watched. Empty: all.
	Namespace string
	// Labels restrict what is watched. Nil: everything is.
	Labels labels.Selector
	// Transform drops what is not read; what it has dropped already it leaves alone. Managed fields are dropped without it.
	Transform toolscache.TransformFunc
	// Indexes by field name.
	Indexes map[string]client.IndexerFunc
}

// Clusters holds the connections to all workload clusters. Start it with the manager.
type Clusters struct {
	options Options

	// ctx is the lifetime of all connections; Start ends it.
	ctx  context.Context //nolint:containedctx // connections outlive the calls that ask for them
	stop context.CancelFunc

	mu          sync.Mutex
	clusters    map[types.NamespacedName]*connection
	subscribers []*subscriber
	// away is since when clusters that are asked for have not been connected.
	away map[types.NamespacedName]time.Time
}

// New is Clusters without any connection.
func New(o Options) *Clusters {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.dial == nil {
		o.dial = o.Policy.guarded().DialContext
	}
	o.pool = &pool{}
	o.known, o.codecs = knownKinds(o.Scheme), serializer.NewCodecFactory(o.Scheme)
	ctx, stop := context.WithCancel(context.Background())
	return &Clusters{
		options: o, ctx: ctx, stop: stop,
		clusters: map[types.NamespacedName]*connection{}, away: map[types.NamespacedName]time.Time{},
	}
}

// connection is one workload cluster: being connected while cluster is nil.
type connection struct {
	kubeconfig []byte
	cluster    *Cluster
	cancel     context.CancelFunc
	lastError  error
}

// Start closes all connections when the context ends, and none is made from then on. Until then they are made,
// even before Start: a manager starts it and the controllers that ask for clusters in no particular order. It
// implements manager.Runnable.
func (c *Clusters) Start(ctx context.Context) error {
	handlers := toolscache.ResourceEventHandlerFuncs{
		// An Add is not always a new Secret: the handler may come later than the first connections.
		AddFunc:    c.secretWritten,
		UpdateFunc: func(_, after any) { c.secretWritten(after) },
		DeleteFunc: c.secretGone,
	}
	if err := c.handle(ctx, &corev1.Secret{}, handlers); err != nil {
		return fmt.Errorf("watching kubeconfig Secrets: %w", err)
	}
	if err := c.handle(ctx, &clusterv1.Cluster{}, toolscache.ResourceEventHandlerFuncs{DeleteFunc: c.clusterGone}); err != nil {
		return fmt.Errorf("watching Clusters: %w", err)
	}
	<-ctx.Done()
	c.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.clusters {
		c.drop(key)
	}
	return nil
}

func (c *Clusters) handle(ctx context.Context, kind client.Object, handlers toolscache.ResourceEventHandler) error {
	informer, err := c.options.Secrets.GetInformer(ctx, kind)
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(handlers)
	return err
}

// secretWritten closes a connection that was made with another kubeconfig, and tells every controller, so that those that
// need the cluster ask again. It tells them of the first kubeconfig, too, if one of them has asked for the cluster.
func (c *Clusters) secretWritten(obj any) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return
	}
	if key, ok := clusterOf(secret); ok && c.outdated(key, secret.Data[pki.KubeconfigKey]) {
		c.notify(key)
	}
}

// outdated drops the connection to a cluster if it was made with another kubeconfig than this one, and returns whether
// who asked for the cluster before would get another answer now.
func (c *Clusters) outdated(key types.NamespacedName, kubeconfig []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.clusters[key]
	if conn == nil {
		_, asked := c.away[key]
		return asked
	}
	if bytes.Equal(conn.kubeconfig, kubeconfig) {
		return false
	}
	c.drop(key)
	return true
}

// secretGone closes the connection whose kubeconfig was deleted: the Cluster is deleted or was moved elsewhere, and nobody
// may ask for it ever again.
func (c *Clusters) secretGone(obj any) {
	secret, ok := deleted(obj).(*corev1.Secret)
	if !ok {
		return
	}
	if key, ok := clusterOf(secret); ok {
		c.Forget(key)
	}
}

// clusterGone forgets a cluster. One that never had a kubeconfig has no Secret whose deletion would do that, and a later
// Cluster of the same name would be away since before it was made.
func (c *Clusters) clusterGone(obj any) {
	if cluster, ok := deleted(obj).(*clusterv1.Cluster); ok {
		c.Forget(client.ObjectKeyFromObject(cluster))
	}
}

// deleted is the object of a deletion.
func deleted(obj any) any {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return obj
}

// clusterOf is the cluster whose kubeconfig a Secret has.
func clusterOf(secret *corev1.Secret) (types.NamespacedName, bool) {
	key := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Labels[clusterv1.ClusterNameLabel]}
	return key, pki.SecretKey(key, pki.Kubeconfig) == client.ObjectKeyFromObject(secret)
}

// Get is the connection to a cluster, or a NotConnectedError with the reason of the last failure.
// A kubeconfig Secret that does not exist is one, too: an event comes when it is created. A changed kubeconfig makes a new
// connection, and an event; other changes of its Secret do not.
func (c *Clusters) Get(ctx context.Context, key types.NamespacedName) (*Cluster, error) {
	secret := &corev1.Secret{}
	secretKey := pki.SecretKey(key, pki.Kubeconfig)
	if err := c.options.Secrets.Get(ctx, secretKey, secret); err != nil {
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading the kubeconfig of %s: %w", key, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drop(key)
		return nil, c.notConnected(key, fmt.Errorf("Secret %s does not exist yet", secretKey))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.clusters[key]
	if conn != nil && !bytes.Equal(conn.kubeconfig, secret.Data[pki.KubeconfigKey]) {
		c.drop(key)
		conn = nil
	}
	if conn == nil {
		conn = c.connect(key, secret)
	}
	switch {
	case conn.cluster != nil:
		return conn.cluster, nil
	case conn.lastError != nil:
		return nil, c.notConnected(key, conn.lastError)
	}
	return nil, c.notConnected(key, errConnecting)
}

// notConnected is the error for a cluster that is not connected. The caller holds the lock.
func (c *Clusters) notConnected(key types.NamespacedName, cause error) error {
	since, known := c.away[key]
	if !known {
		since = c.options.Clock.Now()
		c.away[key] = since
	}
	return &NotConnectedError{Cluster: key, Since: since, Cause: cause}
}

// Forget closes the connection to a cluster, if there is one: call it when the Cluster is gone.
func (c *Clusters) Forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
	delete(c.away, key)
}

func (c *Clusters) drop(key types.NamespacedName) {
	if conn := c.clusters[key]; conn != nil {
		conn.cancel()
		delete(c.clusters, key)
	}
}

// connect starts connecting in the background. The caller holds the lock.
func (c *Clusters) connect(key types.NamespacedName, secret *corev1.Secret) *connection {
	ctx, cancel := context.WithCancel(c.ctx)
	conn := &connection{kubeconfig: secret.Data[pki.KubeconfigKey], cancel: cancel}
	c.clusters[key] = conn
	go c.keepConnected(ctx, key, conn)
	return conn
}

// keepConnected makes a connection, waits until it is lost, and makes it again, until it is dropped or its
// kubeconfig is gone. The pause between attempts grows until a connection stands for a while: one that breaks at
// once is no better than none.
func (c *Clusters) keepConnected(ctx context.Context, key types.NamespacedName, conn *connection) {
	log := ctrl.Log.WithName("remote").WithValues("Cluster", key)
	delay := firstRetry
	for ctx.Err() == nil {
		since := c.options.Clock.Now()
		connected, err := c.once(ctx, key, conn)
		log.V(2).Info("Not connected to the workload cluster", "reason", fmt.Sprint(tidy(err)))
		if connected && c.options.Clock.Since(since) >= lastRetry {
			delay = firstRetry
		}
		pause := delay
		if IsRefused(err) {
			log.Info("The workload cluster is not used before its kubeconfig or the cluster changes", "reason", tidy(err).Error())
			pause = refusedRetry
		}
		select {
		case <-ctx.Done():
		case <-c.options.Clock.After(pause):
		}
		delay = min(delay*2, lastRetry)
		if apierrors.IsNotFound(c.options.Secrets.Get(ctx, pki.SecretKey(key, pki.Kubeconfig), &corev1.Secret{})) {
			c.abandon(key, conn)
		}
	}
}

// once makes a connection and waits until it is lost. It returns whether there was one, and why there is none any more.
func (c *Clusters) once(ctx context.Context, key types.NamespacedName, conn *connection) (connected bool, reason error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reason = func() (err error) {
		defer crash.Recover("connecting to a workload cluster", &err)
		cluster, err := dial(ctx, conn.kubeconfig, c.options)
		if err != nil {
			return err
		}
		connected = true
		_ = c.settle(key, conn, cluster, nil) // What was before does not matter to a connection that works.
		ctrl.Log.WithName("remote").V(2).Info("Connected to the workload cluster", "Cluster", key)
		c.connected(key, cluster)
		return cluster.wait()
	}()
	before := c.settle(key, conn, nil, tidy(reason))
	// What was refused is stated on objects; other failures, when somebody asks again.
	if connected || IsRefused(reason) && !IsRefused(before) {
		c.notify(key)
	}
	return connected, reason
}

// abandon drops a connection, unless another one took its place.
func (c *Clusters) abandon(key types.NamespacedName, conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clusters[key] == conn {
		c.drop(key)
	}
}

// settle records a connection, or why there is none, and returns why there was none before.
func (c *Clusters) settle(key types.NamespacedName, conn *connection, cluster *Cluster, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, lost := conn.lastError, conn.cluster != nil && cluster == nil
	if lost && !IsRefused(err) {
		err = nil // It is being made again, and nothing is known against that yet.
	}
	conn.cluster, conn.lastError = cluster, err
	switch {
	case c.clusters[key] != conn:
	case lost:
		c.away[key] = c.options.Clock.Now()
	case cluster != nil:
		delete(c.away, key)
	}
	return before
}
