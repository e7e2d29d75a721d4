package step

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// versions remembers, per object, the resource version of our last write, so that a reconcile never acts
// on a cache that has not seen it. Resource versions are comparable numbers, as the API server documents.
type versions struct {
	mu   sync.Mutex
	last map[types.NamespacedName]uint64
}

func (v *versions) remember(key types.NamespacedName, version string) {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == nil {
		v.last = map[types.NamespacedName]uint64{}
	}
	v.last[key] = n
}

func (v *versions) forget(key types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.last, key)
}

// newerThan reports whether we wrote a newer version than the one that was read. Once the cache has caught
// up there is nothing left to remember.
func (v *versions) newerThan(read client.Object) bool {
	n, err := strconv.ParseUint(read.GetResourceVersion(), 10, 64)
	if err != nil {
		return false
	}
	key := client.ObjectKeyFromObject(read)
	v.mu.Lock()
	defer v.mu.Unlock()
	last, ok := v.last[key]
	if ok && n >= last {
		delete(v.last, key)
	}
	return ok && n < last
}

// newer reports whether a is a later resource version than b.
func newer(a, b string) bool {
	m, err := strconv.ParseUint(a, 10, 64)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(b, 10, 64)
	return err == nil && m > n
}
