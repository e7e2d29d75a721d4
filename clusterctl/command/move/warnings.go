package move

import (
	"strings"
	"sync"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

// Values of the flag --hide-api-warnings.
const (
	hideDefault = "default"
	hideAll     = "all"
	hideNone    = "none"
)

// miscellaneous is the code of warnings of API servers that are no warnings of a proxy.
const miscellaneous = 299

// warnings prints warnings of one of the API servers, each once: thousands of objects cause the same.
type warnings struct {
	io *iostreams.Streams
	// cluster is "source" or "target".
	cluster string
	// all includes those that users cannot change: a move writes the objects as they are, in the versions that the source has.
	all bool

	mu   sync.Mutex
	seen map[string]bool
}

// HandleWarningHeader prints a warning. It is called concurrently.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	if code != miscellaneous || text == "" || !w.all && unchangeable(text) {
		return
	}
	w.mu.Lock()
	seen := w.seen[text]
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	w.seen[text] = true
	w.mu.Unlock()
	if !seen {
		w.io.Warnf("the API server of the %s cluster warns: %s", w.cluster, text)
	}
}

// unchangeable reports whether a warning is about a deprecated API, in the words of the API server or of a provider's definition, which
// comes with every list of its kind; about the name of a finalizer; or about a Cluster whose class is not reconciled: the move has paused
// it.
func unchangeable(text string) bool {
	return strings.HasPrefix(text, "metadata.finalizers") || strings.Contains(text, " deprecated") ||
		strings.Contains(text, "could not be validated against its ClusterClass")
}
