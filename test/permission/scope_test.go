package permission

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/core"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/testenv"
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
// configurations), a question about the manager's own permissions, or about its own Secret, which the first one creates.
func isGlobal(r request) bool {
	return r.path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" || r.path == "/api/v1/namespaces/default/secrets" ||
		r.method == http.MethodGet && (strings.Count(r.path, "/") <= 3 ||
			strings.HasPrefix(r.path, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions") ||
			strings.HasPrefix(r.path, "/apis/admissionregistration.k8s.io/v1/"))
}

// TestNamespaceOfTheClass runs a manager of one namespace whose Cluster has a class of another one, of which there is a manager, too. It reads
// and watches that class and its templates, and writes to its own namespace only.
func TestNamespaceOfTheClass(t *testing.T) {
	w := newScoped(t)
	ours, theirs := w.Namespace(t), w.tenant("team: theirs")
	w.runs("-theirs", []manager.Component{core.NewComponent()}, "--namespace="+theirs)
	w.runs("-ours", []manager.Component{core.NewComponent()}, "--namespace="+ours)
	cluster := partial("cluster.x-k8s.io/v1beta1", "Cluster", ours, "far")
	cluster.Object["spec"] = map[string]any{"topology": map[string]any{"class": "class", "classNamespace": theirs, "version": "v1.30.0", "controlPlane": map[string]any{"replicas": int64(1)}}}
	testenv.Must(t, w.client.Create(t.Context(), cluster))
	labeled := func(what, label string) {
		t.Helper()
		testenv.Eventually(t, what, func() error {
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
				return err
			}
			name, _, _ := unstructured.NestedString(cluster.Object, "spec", "controlPlaneRef", "name")
			plane := partial("controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlane", ours, name)
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(plane), plane); err != nil {
				return fmt.Errorf("%w: the Cluster has status %v", err, cluster.Object["status"])
			}
			if _, ok := plane.GetLabels()[label]; !ok {
				return fmt.Errorf("labels %v", plane.GetLabels())
			}
			return nil
		})
	}
	labeled("the control plane has a label of the class", "team")
	class := partial("cluster.x-k8s.io/v1beta1", "ClusterClass", theirs, "class")
	change := `{"spec":{"controlPlane":{"metadata":{"labels":{"changed":""}}}}}`
	testenv.Must(t, w.client.Patch(t.Context(), class, client.RawPatch("application/merge-patch+json", []byte(change))))
	labeled("the control plane has a new label of the class", "changed")
	for _, r := range w.sent(func(r request) bool {
		own := isGlobal(r) // also its Secret with the certificate of its webhooks, and questions about its permissions
		return strings.HasSuffix(r.manager, "-ours") && r.method != http.MethodGet && !own && !strings.Contains(r.path, "/namespaces/"+ours+"/")
	}) {
		t.Errorf("the manager of another namespace makes the request %s %s", r.method, r.path)
	}
}
