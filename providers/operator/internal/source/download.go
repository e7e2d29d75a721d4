package source

import (
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/providers/operator/internal/declared"
)

// downloadTimeout is how long all requests for a release may take together.
const downloadTimeout = 2 * time.Minute

// Advice is what users of provider objects can do about failed downloads.
func Advice() repository.Advice {
	return repository.Advice{
		Unreachable: "check the connection of the operator, or set spec.fetchConfig to a source that it can reach",
		Credentials: "the server requires credentials, which the operator does not have: store the release in a ConfigMap, and set spec.fetchConfig.selector",
		Series:      "store the release in a ConfigMap with corrected metadata, and set spec.fetchConfig.selector",
		Token:       "the key github-token of the provider's Secret, or GITHUB_TOKEN of the operator,",
	}
}

// DownloadError is the error of a download. Servers have limits: it must not be repeated often.
type DownloadError struct{ Err error }

// Error implements error.
func (e *DownloadError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DownloadError) Unwrap() error { return e.Err }

// isLocal reports whether reading a release needs no server other than the API server.
func isLocal(p declared.Provider) bool {
	c := p.GetSpec().FetchConfig
	return c != nil && (c.Selector != nil || filepath.IsAbs(c.URL) || strings.HasPrefix(c.URL, "file:") || filepath.IsAbs(c.OCI))
}

// downloads are releases that are not kept in ConfigMaps yet: an attempt to install them that fails needs no other download.
type downloads struct {
	mu  sync.Mutex
	all map[types.UID]download
}

type download struct {
	generation int64
	release    *Release
}

// of returns what was downloaded for this generation of an object, or nil.
func (d *downloads) of(p declared.Provider) *Release {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.all[p.GetUID()]; found.generation == p.GetGeneration() {
		return found.release
	}
	return nil
}

func (d *downloads) remember(p declared.Provider, release *Release) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[types.UID]download{}
	}
	d.all[p.GetUID()] = download{p.GetGeneration(), release}
}

func (d *downloads) forget(p declared.Provider) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, p.GetUID())
}
