package permission

import (
	"net/http"
	"strings"
	"testing"
)

// TestWatchFilter checks that a manager with a filter does not write to objects without the label, whatever event triggers the
// reconcile: of the object itself, of an owner, or of a dependent.
func TestWatchFilter(t *testing.T) {
	w := newScoped(t)
	theirs := w.tenant("team: theirs")
	w.change(theirs) // There must be something to reconcile at the start.
	w.run("--watch-filter=ours")
	ours := w.tenant("cluster.x-k8s.io/watch-filter: ours")
	w.waitUntilReconciled(ours)
	others := w.tenant("cluster.x-k8s.io/watch-filter: others")
	w.change(others)
	w.waitUntilReconciled(w.tenant("cluster.x-k8s.io/watch-filter: ours")) // Earlier events are handled by then.
	for _, r := range w.sent(func(r request) bool {
		return r.method != http.MethodGet && (strings.Contains(r.path, "/"+theirs+"/") || strings.Contains(r.path, "/"+others+"/"))
	}) {
		t.Errorf("%s writes to an object that is not selected: %s %s", r.manager, r.method, r.path)
	}
}

// TestNamespace checks that a manager with --namespace neither reads nor writes objects in other namespaces.
func TestNamespace(t *testing.T) {
	w := newScoped(t)
	theirs := w.tenant("team: theirs")
	w.change(theirs)
	ours := w.tenant("team: ours")
	w.run("--namespace=" + ours)
	w.waitUntilReconciled(ours)
	for _, r := range w.sent(func(r request) bool { return !strings.Contains(r.path, "/namespaces/"+ours+"/") && !isGlobal(r) }) {
		t.Errorf("%s accesses another namespace: %s %s", r.manager, r.method, r.path)
	}
}

// isGlobal reports whether a request is a read of something without a namespace (discovery, versions, CRDs, webhook
// configurations), or of the manager's own Secret.
func isGlobal(r request) bool {
	return r.method == http.MethodGet && (strings.Count(r.path, "/") <= 3 ||
		strings.HasPrefix(r.path, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions") ||
		strings.HasPrefix(r.path, "/apis/admissionregistration.k8s.io/v1/") ||
		r.path == "/api/v1/namespaces/default/secrets")
}
