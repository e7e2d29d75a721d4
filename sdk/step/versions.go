package step

import (
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// staleBackstop is how long a reconcile waits until its last write is in the cache, which usually takes milliseconds,
	// before it reads from the API server. It doubles up to staleLimit as long as the cache is behind.
	staleBackstop = time.Second
	staleLimit    = time.Minute
)

// versions remembers, per object, the resource version of our last write, which must be in the cache before the next reconcile, or
// that our last write deleted the object: it removed the last finalizer. It is only a hint, and confirmed by a live read after
// staleBackstop: after a restore of etcd, the version may never appear.
type versions struct {
	mu       sync.Mutex
	awaiting map[types.NamespacedName]awaited
}

// awaited is the version to wait for, of one object.
type awaited struct {
	version string
	// gone is the UID of an object that our last write deleted; empty if it did not. The response to such a write has the version of
	// the object before it, so that no version shows the deletion.
	gone types.UID
	// checkAt is when to read from the API server; retryAfter is the delay until the next such read if the cache is behind.
	checkAt    time.Time
	retryAfter time.Duration
}

func (v *versions) get(key types.NamespacedName) (awaited, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	a, ok := v.awaiting[key]
	return a, ok
}

// remember makes the next reconcile wait until a version is in the cache.
func (v *versions) remember(key types.NamespacedName, version string, pause time.Duration, now time.Time) {
	if version == "" {
		return
	}
	v.await(key, awaited{version: version, checkAt: now.Add(pause), retryAfter: pause})
}

// rememberGone makes the next reconcile wait until an object with this UID is no longer in the cache.
func (v *versions) rememberGone(key types.NamespacedName, uid types.UID, pause time.Duration, now time.Time) {
	v.await(key, awaited{gone: uid, checkAt: now.Add(pause), retryAfter: pause})
}

func (v *versions) await(key types.NamespacedName, a awaited) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.awaiting == nil {
		v.awaiting = map[types.NamespacedName]awaited{}
	}
	v.awaiting[key] = a
}

func (v *versions) forget(key types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.awaiting, key)
}

// isIn reports whether the cached object is what to wait for, or newer.
func (a awaited) isIn(cached client.Object) bool {
	if a.gone != "" {
		return cached.GetUID() != a.gone
	}
	return isAtLeast(cached.GetResourceVersion(), a.version)
}

// isAtLeast reports whether a cached version is the wanted one or newer. Versions that are not numbers have no order: unless equal,
// they count as not in the cache, and a live read decides.
func isAtLeast(cached, wanted string) bool { return cached == wanted || newer(cached, wanted) }

// newer reports whether resource version a is known to be newer than b.
func newer(a, b string) bool {
	m, err := strconv.ParseUint(a, 10, 64)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(b, 10, 64)
	return err == nil && m > n
}
