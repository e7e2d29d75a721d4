package contract

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lookup finds the versions of provider kinds in a cache that is created later. Until then, no kind is found. The zero value is ready for
// use.
type Lookup struct {
	versions atomic.Pointer[APIVersions]
}

// Use makes the Lookup find versions.
func (l *Lookup) Use(versions APIVersions) { l.versions.Store(&versions) }

// Version returns the newest version of a kind that supports the contract, and reports whether there is one.
func (l *Lookup) Version(ctx context.Context, kind schema.GroupKind) (version string, ok bool) {
	versions := l.versions.Load()
	if versions == nil {
		return "", false
	}
	newest, err := versions.Newest(ctx, kind)
	return newest.Version, err == nil
}
