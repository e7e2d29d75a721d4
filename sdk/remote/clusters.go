package remote

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

// Clusters has the connections to all workload clusters. Add it to the manager, which calls Start.
type Clusters struct {
	options Options

	// ctx is the lifetime of all connections, until Start returns.
	ctx  context.Context //nolint:containedctx // connections outlive calls of Get
	stop context.CancelFunc

	mu          sync.Mutex
	clusters    map[types.NamespacedName]*connection
	subscribers []*subscriber
	// away is since when clusters have not been connected, of those that Get was called for.
	away map[types.NamespacedName]time.Time
	// checks are for metrics; those that connected clusters count themselves are added when they end.
	checks map[types.NamespacedName]checks
}

// New returns Clusters without connections.
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
	c := &Clusters{
		options: o, ctx: ctx, stop: stop,
		clusters: map[types.NamespacedName]*connection{}, away: map[types.NamespacedName]time.Time{},
		checks: map[types.NamespacedName]checks{},
	}
	if o.Metrics != nil {
		_ = o.Metrics.Register(c) // Components in one process have no metrics endpoint; the first one is registered.
	}
	return c
}

// connection is the connection to a workload cluster. While it is being established, cluster is nil.
type connection struct {
	kubeconfig []byte
	cluster    *Cluster
	cancel     context.CancelFunc
	lastError  error
}

// Get returns the connection to a cluster, or a NotConnectedError with the reason of the last failure.
// This includes a kubeconfig Secret that does not exist: its creation is an event. A changed kubeconfig leads to a new
// connection, which is an event; other changes of the Secret do not.
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

// notConnected returns the error for a cluster that is not connected. The caller must hold the lock.
func (c *Clusters) notConnected(key types.NamespacedName, cause error) error {
	since, known := c.away[key]
	if !known {
		since = c.options.Clock.Now()
		c.away[key] = since
	}
	return &NotConnectedError{Cluster: key, Since: since, Cause: cause}
}

// Forget closes the connection to a cluster, if there is one. Call it when the Cluster is deleted.
func (c *Clusters) Forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
	delete(c.away, key)
	delete(c.checks, key)
}

func (c *Clusters) drop(key types.NamespacedName) {
	if conn := c.clusters[key]; conn != nil {
		if conn.cluster != nil {
			n := c.checks[key]
			n.good += conn.cluster.answers.Load()
			c.checks[key] = n
		}
		conn.cancel()
		delete(c.clusters, key)
	}
}

// subscriber is a started source.
type subscriber struct {
	Events
	ctx   context.Context //nolint:containedctx // the lifetime of the controller that subscribed
	queue queue
}
