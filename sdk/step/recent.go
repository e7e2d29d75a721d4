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
	// answerWait is how long to wait for the response to an announced write, whose event often arrives first.
	answerWait = 200 * time.Millisecond
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

	mu      sync.Mutex
	answers *lru.Cache // of answer, by UID
	// asking has the announced writes whose response has not arrived.
	asking map[types.NamespacedName]chan struct{}
}

// answer is the last response for an object.
type answer struct {
	version string
	// asked is when the request was sent: the response is at most that old.
	asked time.Time
	// created is when the creation of the object was requested; zero if this process did not create it.
	created time.Time
}

// NewRecent returns a Recent. exclusive is how long no other process can become the leader (manager.Environment.ExclusiveFor);
// responses are remembered at most that long, and at most for a few seconds.
func NewRecent(exclusive time.Duration, c clock.PassiveClock) *Recent {
	return &Recent{limit: min(exclusive, recentLimit), clock: c, answers: lru.New(recentObjects), asking: map[types.NamespacedName]chan struct{}{}}
}

// Announce announces a write, and returns the current time for Wrote. Until done is called, UpToDate and CreatedHere wait briefly
// for the response if they are called for an object of this name.
func (r *Recent) Announce(key types.NamespacedName) (asked time.Time, done func()) {
	if r == nil {
		return time.Time{}, func() {}
	}
	answered := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking[key] = answered
	return r.clock.Now(), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.asking[key] == answered {
			delete(r.asking, key)
		}
		close(answered)
	}
}

// Wrote remembers the response to a write that was requested at a time.
func (r *Recent) Wrote(obj client.Object, asked time.Time) { r.remember(obj, asked, false) }

// Created is Wrote for the creation of an object.
func (r *Recent) Created(obj client.Object, asked time.Time) { r.remember(obj, asked, true) }

func (r *Recent) remember(obj client.Object, asked time.Time, created bool) {
	if r == nil || obj.GetUID() == "" || obj.GetResourceVersion() == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, _ := r.get(obj.GetUID())
	next := answer{version: obj.GetResourceVersion(), asked: asked, created: known.created}
	if created {
		next.created = asked
	}
	if newer(known.version, next.version) {
		return
	}
	r.answers.Add(obj.GetUID(), next)
}

func (r *Recent) get(uid types.UID) (answer, bool) {
	known, ok := r.answers.Get(uid)
	if !ok {
		return answer{}, false
	}
	return known.(answer), true
}

// Forget forgets an object.
func (r *Recent) Forget(obj client.Object) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers.Remove(obj.GetUID())
}

// UpToDate reports whether a cached copy is known to be at most a few seconds old.
func (r *Recent) UpToDate(cached client.Object) bool {
	known, ok := r.of(cached)
	return ok && r.clock.Since(known.asked) < r.limit && shows(cached.GetResourceVersion(), known.version)
}

// CreatedHere reports whether this process created the object a few seconds ago, so that no other leader can have acted on it.
func (r *Recent) CreatedHere(cached client.Object) bool {
	known, ok := r.of(cached)
	return ok && !known.created.IsZero() && r.clock.Since(known.created) < r.limit
}

func (r *Recent) of(obj client.Object) (answer, bool) {
	if r == nil {
		return answer{}, false
	}
	r.mu.Lock()
	asking := r.asking[client.ObjectKeyFromObject(obj)]
	r.mu.Unlock()
	if asking != nil {
		select {
		case <-asking:
		case <-time.After(answerWait):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.get(obj.GetUID())
}
