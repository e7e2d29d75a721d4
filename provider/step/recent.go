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
	// recentLimit bounds how long an answer counts as recent.
	recentLimit = 5 * time.Second
	// answerWait is how long to wait for the answer to a write that was announced: the event of it often comes first.
	answerWait = 200 * time.Millisecond
	// recentObjects is of how many objects answers are remembered. Forgetting one costs a read.
	recentObjects = 4096
)

// Recent remembers the API server's answers to writes of this process. An answer shows the object as it was at that moment,
// as a live read does: a cached copy that is not older than an answer of a few seconds ago is not older than those seconds
// either. What only creates may rely on that instead of reading once more; what deletes may not.
//
// Answers count for as long as no other process can have become the leader since: the lease outlasts the deadline by which
// a leader that cannot renew it gives up. A process that was stopped for longer finds that its answers are too old. All
// controllers of a manager share one Recent. A nil one remembers nothing.
type Recent struct {
	limit time.Duration
	clock clock.PassiveClock

	mu      sync.Mutex
	answers *lru.Cache // of answer, by UID
	// asking has the writes that were announced and are under way.
	asking map[types.NamespacedName]chan struct{}
}

// answer is what is remembered of one object.
type answer struct {
	version string
	// asked is when the request was made, and so how old the answer is at most.
	asked time.Time
	// created is when the creation of the object was asked for; zero if this process did not create it.
	created time.Time
}

// NewRecent remembers answers for as long as nobody else can lead, and for a few seconds at most.
func NewRecent(exclusive time.Duration, c clock.PassiveClock) *Recent {
	return &Recent{limit: min(exclusive, recentLimit), clock: c, answers: lru.New(recentObjects), asking: map[types.NamespacedName]chan struct{}{}}
}

// Announce announces a write, and says when it was. Until done is called, whoever wants to know about an object of this name
// waits a moment for the answer.
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

// Wrote remembers the answer to a write that was asked for at a time.
func (r *Recent) Wrote(obj client.Object, asked time.Time) { r.remember(obj, asked, false) }

// Created is Wrote for the creation of an object that did not exist.
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

// UpToDate reports whether a cached copy is known to be as the API server had the object a few seconds ago, or newer.
func (r *Recent) UpToDate(cached client.Object) bool {
	known, ok := r.of(cached)
	return ok && r.clock.Since(known.asked) < r.limit && shows(cached.GetResourceVersion(), known.version)
}

// CreatedHere reports whether this process created the object a few seconds ago: nobody else can have acted on it as a leader.
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
