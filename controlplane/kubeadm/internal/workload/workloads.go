package workload

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/etcd"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/portforward"
	"sigs.k8s.io/cluster-api/provider/remote"
)

// etcdPort is where members listen for clients.
const etcdPort = 2379

// Connections are the connections to workload clusters; remote.Clusters is the real one.
type Connections interface {
	// Get is the connection to a cluster, or an error for which remote.IsNotConnected holds.
	Get(ctx context.Context, key types.NamespacedName) (*remote.Cluster, error)
	// Source tells when connections come and go.
	Source(events remote.Events) source.Source
}

// Options say where workload clusters and their certificates are found.
type Options struct {
	// Connections must cache what Cached lists.
	Connections Connections
	// Secrets reads the Secrets of clusters from a cache.
	Secrets client.Reader
	// Clock is the real one if it is nil.
	Clock clock.PassiveClock
	// EtcdDialTimeout is how long connecting to an etcd member may take, 10 s if it is zero.
	EtcdDialTimeout time.Duration
	// EtcdCallTimeout is how long a call to an etcd member may take, 15 s if it is zero.
	EtcdCallTimeout time.Duration
}

// Workloads are the workload clusters of all control planes. Start it with the manager, so that connections to etcd
// end when the connection to their cluster does.
type Workloads struct {
	options Options

	mu       sync.Mutex
	clusters map[types.NamespacedName]*Cluster
}

var _ connection.Workloads = (*Workloads)(nil)

// New are Workloads of which none has been used yet.
func New(o Options) *Workloads {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Workloads{options: o, clusters: map[types.NamespacedName]*Cluster{}}
}

// Start implements manager.Runnable.
func (w *Workloads) Start(ctx context.Context) error {
	gone := func(_ context.Context, key types.NamespacedName) []reconcile.Request {
		w.drop(key) // A new connection is an end, too: that of the one before.
		return nil
	}
	// There are no requests, so no queue is needed.
	if err := w.options.Connections.Source(remote.Events{Connection: gone}).Start(ctx, nil); err != nil {
		return fmt.Errorf("watching connections to workload clusters: %w", err)
	}
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, c := range w.clusters {
		delete(w.clusters, key)
		c.etcd.Close()
	}
	return nil
}

// Get implements connection.Workloads.
func (w *Workloads) Get(ctx context.Context, key types.NamespacedName) (connection.Workload, error) {
	connection, err := w.options.Connections.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.clusters[key]
	if c != nil && c.connection == connection {
		return c, nil
	}
	if c != nil {
		c.etcd.Close()
	}
	if c, err = w.open(key, connection); err != nil {
		return nil, err
	}
	w.clusters[key] = c
	return c, nil
}

func (w *Workloads) drop(key types.NamespacedName) {
	w.mu.Lock()
	c := w.clusters[key]
	delete(w.clusters, key)
	w.mu.Unlock()
	if c != nil {
		c.etcd.Close()
	}
}

func (w *Workloads) open(key types.NamespacedName, connection *remote.Cluster) (*Cluster, error) {
	forward, err := portforward.New(connection.Config, connection.Dialer)
	if err != nil {
		return nil, fmt.Errorf("connecting to workload cluster %s: %w", key, err)
	}
	return &Cluster{
		Client:     connection.Client,
		connection: connection,
		forward:    forward.Dial,
		clock:      w.options.Clock,
		etcd: etcd.New(etcd.Options{
			Dial: func(ctx context.Context, node string) (net.Conn, error) {
				return forward.Dial(ctx, staticPod("etcd", node), etcdPort)
			},
			Identity:    &etcd.Identity{Secrets: w.options.Secrets, Cluster: key, Clock: w.options.Clock},
			DialTimeout: w.options.EtcdDialTimeout,
			CallTimeout: w.options.EtcdCallTimeout,
		}),
	}, nil
}

// staticPod is the mirror Pod of a component of the control plane on a Node.
func staticPod(component, node string) types.NamespacedName {
	return types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: component + "-" + node}
}
