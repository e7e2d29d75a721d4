package cloud

import (
	"io"

	"k8s.io/utils/clock"
)

// Options are the dependencies of a Cloud.
type Options struct {
	// Clock is the time in the cloud. Default: the real clock.
	Clock clock.Clock

	// Random is used for UIDs, generated names and injected errors. It must be safe for concurrent use. Default:
	// crypto/rand.
	Random io.Reader

	// Directory, if set, makes resource groups durable: one journal file per group, written before a write returns.
	// Default: groups are in memory only.
	Directory string

	// Limit is the maximum size of the objects of a group in bytes. Default: store.DefaultLimit.
	Limit int64
}
