package classes

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// Memo holds the latest value of each object, up to a number of objects; the least recently used are evicted. It is safe for
// concurrent use. The values are shared and must be immutable.
type Memo[T any] struct{ entries *lru.Cache }

type entry[T any] struct {
	version string
	value   T
}

// NewMemo returns a Memo for at most size objects.
func NewMemo[T any](size int) *Memo[T] { return &Memo[T]{entries: lru.New(size)} }

// Get returns the cached value for a version of an object, or computes it. The version must change whenever the value does:
// use the generation if the value depends on the spec only, and the resource version otherwise. Errors are not cached, nor
// are values of objects without UID, which do not come from an API server.
//
// Concurrent calls may compute the same value.
func (m *Memo[T]) Get(uid types.UID, version string, compute func() (T, error)) (T, error) {
	if found, ok := m.entries.Get(uid); ok && uid != "" {
		if e := found.(entry[T]); e.version == version {
			return e.value, nil
		}
	}
	value, err := compute()
	if err == nil && uid != "" {
		m.entries.Add(uid, entry[T]{version: version, value: value})
	}
	return value, err
}
