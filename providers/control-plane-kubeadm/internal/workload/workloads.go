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

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/internal/etcd"
	"sigs.k8s.io/cluster-api/sdk/portforward"
	"sigs.k8s.io/cluster-api/sdk/remote"
)

// etcdPort is the client port of etcd members.
const etcdPort = 2379

// Connections are the connections to workload clusters. remote.Clusters implements it.
type Connections interface {
	// Get returns the connection to a cluster. Without one, the error satisfies remote.IsNotConnected.
	Get(ctx context.Context, key types.NamespacedName) (*remote.Cluster, error)
	// Source returns the source of connection events.
	Source(events remote.Events) source.Source
}

// Options configure Workloads.
type Options struct {
	// Connections must cache what Cached lists.
	Connections Connections
	// Secrets reads Secrets of clusters from a cache.
	Secrets client.Reader
	// Clock defaults to the real one.
	Clock clock.PassiveClock
	// EtcdDialTimeout bounds connecting to an etcd member. Defaults to 10 s.
	EtcdDialTimeout time.Duration
	// EtcdCallTimeout bounds a call to an etcd member. Defaults to 15 s.
	EtcdCallTimeout time.Duration
	// CheckLeader returns an error if etcd must no longer be changed (manager.Environment.CheckLeader). Nil: it always may.
	CheckLeader func() error
}

// Workloads are the workload clusters of all control planes. The manager must start it, so that connections to etcd are closed
// together with the connection to their cluster.
type Workloads struct {
	options Options

	mu       sync.Mutex
	clusters map[types.NamespacedName]*Cluster
}

var _ connection.Workloads = (*Workloads)(nil)

// New returns Workloads without connections.
func New(o Options) *Workloads {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Workloads{options: o, clusters: map[types.NamespacedName]*Cluster{}}
}

// Start implements manager.Runnable.
func (w *Workloads) Start(ctx context.Context) error {
	gone := func(_ context.Context, key types.NamespacedName) []reconcile.Request {
		w.drop(key) // A new connection replaces the previous one.
		return nil
	}
	// It returns no requests, so it needs no queue.
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
		since:      w.options.Clock.Now(),
		forward:    forward.Dial,
		clock:      w.options.Clock,
		etcd: etcd.New(etcd.Options{
			Dial: func(ctx context.Context, node string) (net.Conn, error) {
				return forward.Dial(ctx, staticPod("etcd", node), etcdPort)
			},
			Identity:    &etcd.Identity{Secrets: w.options.Secrets, Cluster: key, Clock: w.options.Clock},
			DialTimeout: w.options.EtcdDialTimeout,
			CallTimeout: w.options.EtcdCallTimeout,
			CheckLeader: w.options.CheckLeader,
		}),
	}, nil
}

// staticPod returns the key of the mirror Pod of a control plane component on a Node.
func staticPod(component, node string) types.NamespacedName {
	return types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: component + "-" + node}
}
