package step

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// recentLimit is how long a response counts as recent.
	recentLimit = 5 * time.Second
	// responseTimeout is how long to wait for the response to an announced write, whose event often arrives first.
	responseTimeout = 200 * time.Millisecond
	// recentObjects is the number of objects whose responses are remembered. Forgetting one costs a read.
	recentObjects = 4096
)

// Recent remembers the API server's responses to writes of this process. A response has the object's content at that time, like a
// live read: a cached copy that is at least as new as a response of a few seconds ago is at most a few seconds old. Code that only
// creates objects may rely on that instead of a live read; code that deletes may not.
//
// Responses count as long as no other process can have become the leader since: the lease outlasts the deadline after which a
// leader that cannot renew it stops. A process that was suspended for longer finds its responses expired. All controllers of a
// manager share one Recent. Nil remembers nothing.
type Recent struct {
	limit time.Duration
	clock clock.PassiveClock

	mu        sync.Mutex
	responses *lru.Cache // of response, by UID
	// pending has the announced writes whose response has not arrived.
	pending map[types.NamespacedName]chan struct{}
}

// response is the last response for an object.
type response struct {
	version string
	// requested is when the request was sent: the response is at most that old.
	requested time.Time
	// created is when the creation of the object was requested; zero if this process did not create it.
	created time.Time
}

// NewRecent returns a Recent. exclusive is how long no other process can become the leader (manager.Environment.ExclusiveFor);
// responses are remembered at most that long, and at most for a few seconds.
func NewRecent(exclusive time.Duration, c clock.PassiveClock) *Recent {
	return &Recent{
		limit:     min(exclusive, recentLimit),
		clock:     c,
		responses: lru.New(recentObjects),
		pending:   map[types.NamespacedName]chan struct{}{},
	}
}

// Announce announces a write, and returns the current time for Wrote. Until done is called, UpToDate and CreatedHere wait briefly
// for the response if they are called for an object of this name.
func (r *Recent) Announce(key types.NamespacedName) (requested time.Time, done func()) {
	if r == nil {
		return time.Time{}, func() {}
	}
	responded := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending[key] = responded
	return r.clock.Now(), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.pending[key] == responded {
			delete(r.pending, key)
		}
		close(responded)
	}
}

// Wrote remembers the response to a write that was requested at a time.
func (r *Recent) Wrote(obj client.Object, requested time.Time) { r.remember(obj, requested, false) }

// Created is Wrote for the creation of an object.
func (r *Recent) Created(obj client.Object, requested time.Time) { r.remember(obj, requested, true) }

func (r *Recent) remember(obj client.Object, requested time.Time, created bool) {
	if r == nil || obj.GetUID() == "" || obj.GetResourceVersion() == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, _ := r.get(obj.GetUID())
	next := response{version: obj.GetResourceVersion(), requested: requested, created: known.created}
	if created {
		next.created = requested
	}
	if newer(known.version, next.version) {
		return
	}
	r.responses.Add(obj.GetUID(), next)
}

func (r *Recent) get(uid types.UID) (response, bool) {
	known, ok := r.responses.Get(uid)
	if !ok {
		return response{}, false
	}
	return known.(response), true
}

// Forget forgets an object.
func (r *Recent) Forget(obj client.Object) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.responses.Remove(obj.GetUID())
}

// UpToDate reports whether a cached copy is known to be at most a few seconds old.
func (r *Recent) UpToDate(cached client.Object) bool {
	known, ok := r.of(cached)
	return ok && r.clock.Since(known.requested) < r.limit && isAtLeast(cached.GetResourceVersion(), known.version)
}

// CreatedHere reports whether this process created the object a few seconds ago, so that no other leader can have acted on it.
func (r *Recent) CreatedHere(cached client.Object) bool {
	known, ok := r.of(cached)
	return ok && !known.created.IsZero() && r.clock.Since(known.created) < r.limit
}

func (r *Recent) of(obj client.Object) (response, bool) {
	if r == nil {
		return response{}, false
	}
	r.mu.Lock()
	pending := r.pending[client.ObjectKeyFromObject(obj)]
	r.mu.Unlock()
	if pending != nil {
		select {
		case <-pending:
		case <-time.After(responseTimeout):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.get(obj.GetUID())
}
