// Package memo keeps what was computed from an object for as long as the object does not change: the
// compiled patches and variables of a class, which every Cluster of the class needs.
package memo

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// Memo holds the latest computation for a number of objects, those used last. It may be used
// concurrently; the values are shared and must be immutable.
type Memo[T any] struct{ entries *lru.Cache }

type entry[T any] struct {
	version string
	value   T
}

// New is a Memo for at most size objects.
func New[T any](size int) *Memo[T] { return &Memo[T]{entries: lru.New(size)} }

// Get returns what was computed for a version of an object, or computes it. Version is whatever
// determines the result: the generation if it is the spec, the resource version if more. Errors and
// results for objects without UID, which are in no API server, are not kept.
//
// Callers that ask at the same time may compute at the same time.
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
