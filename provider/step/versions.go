package step

import (
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// staleBackstop is how long a reconcile waits for the event of our own last write, which normally comes within
	// milliseconds, before it asks the API server. It doubles up to staleLimit while the cache stays behind.
	staleBackstop = time.Second
	staleLimit    = time.Minute
)

// versions remembers, per object, the resource version that the cache has to show before the next reconcile: that of our
// own last write. It is a hint, confirmed by a live read before it holds anybody for longer than staleBackstop: after a
// restore of etcd, the write that it stems from may never have happened.
type versions struct {
	mu       sync.Mutex
	awaiting map[types.NamespacedName]awaited
}

// awaited is what the cache has to show of one object.
type awaited struct {
	version string
	// confirm is when to ask the API server; pause is how long that is put off if the cache is behind.
	confirm time.Time
	pause   time.Duration
}

func (v *versions) get(key types.NamespacedName) (awaited, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	a, ok := v.awaiting[key]
	return a, ok
}

// remember has the next reconcile wait until the cache shows a version.
func (v *versions) remember(key types.NamespacedName, version string, pause time.Duration, now time.Time) {
	if version == "" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.awaiting == nil {
		v.awaiting = map[types.NamespacedName]awaited{}
	}
	v.awaiting[key] = awaited{version: version, confirm: now.Add(pause), pause: pause}
}

func (v *versions) forget(key types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.awaiting, key)
}

// shows reports whether a cached version is the wanted one or a later one. Versions that are not numbers have no order:
// then a later one counts as not there yet, and the live read that follows tells.
func shows(cached, wanted string) bool { return cached == wanted || newer(cached, wanted) }

// newer reports whether a is known to be a later resource version than b.
func newer(a, b string) bool {
	m, err := strconv.ParseUint(a, 10, 64)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(b, 10, 64)
	return err == nil && m > n
}
