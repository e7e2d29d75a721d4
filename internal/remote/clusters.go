package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/internal/pki"
)

// ErrNotConnected says that there is no connection to a workload cluster now. It is being made, or made
// again, in the background; a Source tells when it stands.
var ErrNotConnected = errors.New("not connected to the workload cluster")

// IsNotConnected reports whether an error only says that a workload cluster cannot be reached right now.
func IsNotConnected(err error) bool { return errors.Is(err, ErrNotConnected) }

const (
	// firstRetry and lastRetry bound the pause between attempts to connect.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 15 * time.Second
	// syncTimeout bounds how long the first filling of a cache may take.
	syncTimeout = 5 * time.Minute
	// requestTimeout bounds every request but watches.
	requestTimeout = 10 * time.Second
)

// Options configure Clusters.
type Options struct {
	// Secrets reads kubeconfig Secrets, usually the manager's cached client.
	Secrets client.Reader
	// Scheme knows the kinds that are read from and written to workload clusters.
	Scheme *runtime.Scheme
	// UserAgent names the manager to workload API servers.
	UserAgent string
	// Cached lists the kinds that are cached, with what is kept of them. All other kinds are read live.
	Cached []Cached
	Clock  clock.WithTicker
}

// Cached is a kind of workload cluster object that is cached.
type Cached struct {
	// Object is an empty object of the kind.
	Object client.Object
	// Options restrict what is watched and kept.
	Options cache.ByObject
	// Indexes by field name.
	Indexes map[string]client.IndexerFunc
}

// Clusters holds the connections to all workload clusters. Start it with the manager.
type Clusters struct {
	options Options

	mu          sync.Mutex
	ctx         context.Context
	clusters    map[types.NamespacedName]*connection
	subscribers []*subscriber
}

// New is Clusters without any connection.
func New(o Options) *Clusters {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Clusters{options: o, clusters: map[types.NamespacedName]*connection{}}
}

// connection is one workload cluster: being connected while cluster is nil.
type connection struct {
	secretVersion string
	cluster       *Cluster
	cancel        context.CancelFunc
	lastError     error
}

// Start lets connections be made until the context ends. It implements manager.Runnable.
func (c *Clusters) Start(ctx context.Context) error {
	c.mu.Lock()
	c.ctx = ctx
	c.mu.Unlock()
	<-ctx.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.clusters {
		c.drop(key)
	}
	return nil
}

// Get is the connection to a cluster, or ErrNotConnected (wrapped with the reason of the last failure).
// A kubeconfig Secret that is not there is ErrNotConnected too: an event comes when a later Get finds it and
// connects. A changed kubeconfig makes a new connection.
func (c *Clusters) Get(ctx context.Context, key types.NamespacedName) (*Cluster, error) {
	secret := &corev1.Secret{}
	secretKey := pki.SecretKey(key, pki.Kubeconfig)
	if err := c.options.Secrets.Get(ctx, secretKey, secret); err != nil {
		if apierrors.IsNotFound(err) {
			c.Forget(key)
			return nil, fmt.Errorf("%w %s: Secret %s does not exist yet", ErrNotConnected, key, secretKey)
		}
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", key, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.clusters[key]
	if conn != nil && conn.secretVersion != secret.ResourceVersion {
		c.drop(key)
		conn = nil
	}
	if conn == nil {
		var err error
		if conn, err = c.connect(key, secret); err != nil {
			return nil, err
		}
	}
	if conn.cluster == nil {
		if conn.lastError != nil {
			return nil, fmt.Errorf("%w %s: %w", ErrNotConnected, key, conn.lastError)
		}
		return nil, fmt.Errorf("%w %s: connecting", ErrNotConnected, key)
	}
	return conn.cluster, nil
}

// Forget closes the connection to a cluster, if there is one: call it when the Cluster is gone.
func (c *Clusters) Forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
}

func (c *Clusters) drop(key types.NamespacedName) {
	if conn := c.clusters[key]; conn != nil {
		conn.cancel()
		delete(c.clusters, key)
	}
}

// connect starts connecting in the background. The caller holds the lock.
func (c *Clusters) connect(key types.NamespacedName, secret *corev1.Secret) (*connection, error) {
	if c.ctx == nil {
		return nil, fmt.Errorf("%w %s: the manager has not started", ErrNotConnected, key)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	conn := &connection{secretVersion: secret.ResourceVersion, cancel: cancel}
	c.clusters[key] = conn
	go c.keepConnected(ctx, key, conn, secret)
	return conn, nil
}

// keepConnected makes a connection, waits until it is lost, and makes it again, until it is dropped or its
// kubeconfig is gone.
func (c *Clusters) keepConnected(ctx context.Context, key types.NamespacedName, conn *connection, secret *corev1.Secret) {
	log := ctrl.Log.WithName("remote").WithValues("Cluster", key)
	delay := firstRetry
	for ctx.Err() == nil {
		cluster, err := dial(ctx, secret.Data[pki.KubeconfigKey], c.options)
		c.settle(conn, cluster, err)
		if err == nil {
			delay = firstRetry
			log.V(2).Info("Connected to the workload cluster")
			c.connected(key, cluster)
			lost := cluster.wait()
			c.settle(conn, nil, lost)
			log.V(2).Info("Lost the connection to the workload cluster", "reason", fmt.Sprint(lost))
			c.notify(key)
		}
		select {
		case <-ctx.Done():
		case <-c.options.Clock.After(delay):
		}
		delay = min(delay*2, lastRetry)
		if apierrors.IsNotFound(c.options.Secrets.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{})) {
			c.Forget(key)
		}
	}
}

func (c *Clusters) settle(conn *connection, cluster *Cluster, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.cluster, conn.lastError = cluster, err
}
