// Package events turns changes of containers into reconcile requests: one stream of the container runtime's events serves all
// controllers of a manager, so that nothing is polled.
//
// An event concerns the object in the container's labels (package identity). Containers of Cluster API v1.7 do not have them;
// their objects are looked up by name. When the stream was interrupted, events may be lost: all objects are reconciled once it
// is open again.
//
// What does not belong here: what controllers do about a container.
package events

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
)

// Stream is the stream of events of a manager, which runs it. It is only open while this manager is the leader.
type Stream struct {
	engine engine.Engine
	clock  clock.Clock

	lock        sync.Mutex
	subscribers map[string]subscriber
}

// subscriber is a controller.
type subscriber struct {
	Lookup
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Lookup finds objects of a kind. It must not block.
type Lookup struct {
	// All returns all objects of the kind.
	All func(context.Context) []reconcile.Request
	// Named returns the objects of Clusters of a name, in any namespace, whose container has a name. It is only called for
	// containers without the labels of an object.
	Named func(ctx context.Context, cluster, container string) []reconcile.Request
}

// New returns a stream.
func New(e engine.Engine, c clock.Clock) *Stream {
	return &Stream{engine: e, clock: c, subscribers: map[string]subscriber{}}
}

// Source returns a source of requests for the objects of a kind whose containers change.
func (s *Stream) Source(kind string, lookup Lookup) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.subscribers[kind] = subscriber{Lookup: lookup, queue: queue}
		return nil
	})
}

// Start implements manager.Runnable. It returns when ctx ends.
func (s *Stream) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("container-events")
	interrupted := false
	pauses := newBackoff()
	for ctx.Err() == nil {
		opened := func() {
			pauses = newBackoff()
			if interrupted {
				log.Info("Reading events of containers again, reconciling all objects")
				s.reconcileAll(ctx)
			}
			interrupted = false
		}
		err := s.engine.Events(ctx, map[string]string{identity.ClusterLabel: ""}, opened, func(e engine.Event) { s.handle(ctx, e) })
		if ctx.Err() != nil {
			break
		}
		if !interrupted { // Once per interruption, not per attempt.
			log.Error(err, "Cannot read events of containers, retrying until the container runtime responds")
		}
		interrupted = true
		select {
		case <-ctx.Done():
		case <-s.clock.After(pauses.Step()):
		}
	}
	return nil
}

// newBackoff returns the pauses between attempts to open the stream.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 20, Cap: 10 * time.Second}
}

// handle requests reconciles of the object that a container belongs to.
func (s *Stream) handle(ctx context.Context, e engine.Event) {
	kind, key := identity.Object(e.Labels)
	s.lock.Lock()
	defer s.lock.Unlock()
	if kind != "" {
		if to, ok := s.subscribers[kind]; ok && key.Name != "" {
			to.queue.Add(reconcile.Request{NamespacedName: key})
		}
		return
	}
	for _, to := range s.subscribers {
		for _, request := range to.Named(ctx, e.Labels[identity.ClusterLabel], e.Name) {
			to.queue.Add(request)
		}
	}
}

// reconcileAll requests a reconcile of all objects.
func (s *Stream) reconcileAll(ctx context.Context) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, to := range s.subscribers {
		for _, request := range to.All(ctx) {
			to.queue.Add(request)
		}
	}
}
