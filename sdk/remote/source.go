package remote

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Watch maps events of a cached kind in all workload clusters to requests for a controller.
type Watch struct {
	// Object is an empty object of a cached kind.
	Object client.Object
	// Requests returns what to reconcile for an event of obj.
	Requests func(ctx context.Context, cluster types.NamespacedName, obj client.Object) []reconcile.Request
	// Changed reports whether an update is relevant. Nil: all are.
	Changed func(before, after client.Object) bool
}

// Events are the events of workload clusters that a controller handles.
type Events struct {
	// Connection returns what to reconcile when a cluster was connected or disconnected.
	Connection func(ctx context.Context, cluster types.NamespacedName) []reconcile.Request
	Watches    []Watch
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Source returns a source with the events of all workload clusters.
func (c *Clusters) Source(e Events) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		s := &subscriber{Events: e, ctx: ctx, queue: q}
		c.mu.Lock()
		c.subscribers = append(c.subscribers, s)
		connections := maps.Clone(c.clusters)
		c.mu.Unlock()
		for key, conn := range connections {
			if cluster := c.current(conn); cluster != nil {
				s.attach(key, cluster)
				s.connection(key)
			}
		}
		return nil
	})
}

func (c *Clusters) current(conn *connection) *Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	return conn.cluster
}

func (c *Clusters) everySubscriber() []*subscriber {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*subscriber(nil), c.subscribers...)
}

// connected subscribes all controllers to a new connection, and notifies them.
func (c *Clusters) connected(key types.NamespacedName, cluster *Cluster) {
	for _, s := range c.everySubscriber() {
		s.attach(key, cluster)
		s.connection(key)
	}
}

// notify notifies all controllers that a connection changed.
func (c *Clusters) notify(key types.NamespacedName) {
	for _, s := range c.everySubscriber() {
		s.connection(key)
	}
}

func (s *subscriber) connection(key types.NamespacedName) {
	if s.Connection != nil {
		s.add(s.Connection(s.ctx, key))
	}
}

func (s *subscriber) add(requests []reconcile.Request) {
	for _, r := range requests {
		s.queue.Add(r)
	}
}

func (s *subscriber) attach(key types.NamespacedName, cluster *Cluster) {
	for _, w := range s.Watches {
		if err := cluster.subscribe(w.Object, s.listener(key, w)); err != nil {
			ctrl.LoggerFrom(s.ctx).Error(err, "Cannot watch a workload cluster", "Cluster", key)
		}
	}
}

func (s *subscriber) listener(key types.NamespacedName, w Watch) listener {
	return func(before, after client.Object) {
		switch {
		case after == nil:
			after = before
		case before == nil:
		case after.GetResourceVersion() == before.GetResourceVersion(), w.Changed != nil && !w.Changed(before, after):
			return
		}
		s.add(w.Requests(s.ctx, key, after))
	}
}
