package source

import (
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
)

// downloadTimeout is how long all requests for a release may take together.
const downloadTimeout = 2 * time.Minute

// Advice is what users of provider objects can do about failed downloads.
func Advice() repository.Advice {
	return repository.Advice{
		Unreachable: "check the connection of the operator, or set spec.fetchConfig to a source that it can reach",
		Credentials: "the server requires credentials, which the operator does not have: " +
			"store the release in a ConfigMap, and set spec.fetchConfig.selector",
		Series: "store the release in a ConfigMap with corrected metadata, and set spec.fetchConfig.selector",
		Token:  "the key github-token of the provider's Secret, or GITHUB_TOKEN of the operator,",
	}
}

// firstPause and lastPause are the limits of the pause between two attempts of a download. GitHub allows 60 requests per hour
// without a token, and an attempt makes up to three.
const (
	firstPause = 10 * time.Second
	lastPause  = 5 * time.Minute
)

// DownloadError is the error of a download. Servers have limits: it must not be repeated before the pause is over.
type DownloadError struct {
	Err   error
	Pause time.Duration
}

// Error implements error.
func (e *DownloadError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DownloadError) Unwrap() error { return e.Err }

// isLocal reports whether reading a release needs no server other than the API server.
func isLocal(p providerobject.Provider) bool {
	c := p.GetSpec().FetchConfig
	return c != nil && (c.Selector != nil || filepath.IsAbs(c.URL) || strings.HasPrefix(c.URL, "file:") || filepath.IsAbs(c.OCI))
}

// downloads remembers the last download of each object: a release that is not kept in a ConfigMap yet, so that an attempt to install it
// that fails needs no other download, or a failure. A change of the spec ends both.
type downloads struct {
	mu  sync.Mutex
	all map[types.UID]download
}

type download struct {
	generation int64
	// release is nil if the download failed.
	release *Release
	// pause is that after the last failure, next the time of the next attempt.
	pause time.Duration
	next  time.Time
}

// of returns what was downloaded for this generation of an object, or nil.
func (d *downloads) of(p providerobject.Provider) *Release {
	last, _ := d.last(p)
	return last.release
}

// left returns how long the pause after a failure for this generation of an object still lasts; zero or less if it is over.
func (d *downloads) left(p providerobject.Provider, now time.Time) time.Duration {
	if last, ok := d.last(p); ok && last.pause > 0 {
		return last.next.Sub(now)
	}
	return 0
}

func (d *downloads) last(p providerobject.Provider) (download, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, ok := d.all[p.GetUID()]
	if !ok || last.generation != p.GetGeneration() {
		return download{}, false
	}
	return last, true
}

func (d *downloads) succeeded(p providerobject.Provider, release *Release) {
	d.set(p, download{generation: p.GetGeneration(), release: release})
}

// failed remembers a failure, and returns the pause until the next attempt.
func (d *downloads) failed(p providerobject.Provider, now time.Time) time.Duration {
	pause := firstPause
	if last, ok := d.last(p); ok && last.pause > 0 {
		pause = min(2*last.pause, lastPause)
	}
	d.set(p, download{generation: p.GetGeneration(), pause: pause, next: now.Add(pause)})
	return pause
}

func (d *downloads) set(p providerobject.Provider, last download) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[types.UID]download{}
	}
	d.all[p.GetUID()] = last
}

func (d *downloads) forget(p providerobject.Provider) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, p.GetUID())
}
