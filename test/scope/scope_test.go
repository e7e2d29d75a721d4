package scope

import (
	"net/http"
	"strings"
	"testing"
)

// TestWatchFilter: a manager with a filter writes nothing to objects without the label, whatever event leads to them: those
// of the objects themselves, of what they belong to, and of what belongs to them.
func TestWatchFilter(t *testing.T) {
	w := newWorld(t)
	theirs := w.tenant("team: theirs")
	w.stir(theirs) // so that there is something to do at the start
	w.run("--watch-filter=ours")
	ours := w.tenant("cluster.x-k8s.io/watch-filter: ours")
	w.awaitServed(ours)
	others := w.tenant("cluster.x-k8s.io/watch-filter: others")
	w.stir(others)
	w.awaitServed(w.tenant("cluster.x-k8s.io/watch-filter: ours")) // by then, the events of before have been handled, too
	for _, r := range w.sent(func(r request) bool {
		return r.method != http.MethodGet && (strings.Contains(r.path, "/"+theirs+"/") || strings.Contains(r.path, "/"+others+"/"))
	}) {
		t.Errorf("%s touches what is not selected: %s %s", r.manager, r.method, r.path)
	}
}

// TestNamespace: a manager of one namespace neither writes nor reads anything of its kinds elsewhere.
func TestNamespace(t *testing.T) {
	w := newWorld(t)
	theirs := w.tenant("team: theirs")
	w.stir(theirs)
	ours := w.tenant("team: ours")
	w.run("--namespace=" + ours)
	w.awaitServed(ours)
	for _, r := range w.sent(func(r request) bool { return !strings.Contains(r.path, "/namespaces/"+ours+"/") && !isGlobal(r) }) {
		t.Errorf("%s asks for what is not in its namespace: %s %s", r.manager, r.method, r.path)
	}
}

// isGlobal selects reads of what has no namespace (discovery, versions, definitions of kinds, webhook configurations), and
// of the manager's own Secret in the manager's own namespace.
func isGlobal(r request) bool {
	return r.method == http.MethodGet && (strings.Count(r.path, "/") <= 3 ||
		strings.HasPrefix(r.path, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions") ||
		strings.HasPrefix(r.path, "/apis/admissionregistration.k8s.io/v1/") ||
		r.path == "/api/v1/namespaces/default/secrets")
}
