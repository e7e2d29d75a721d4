package journey

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

// withVariable returns these tools with a variable of clusterctl.yaml.
func (t *Tools) withVariable(tb testing.TB, name, value string) *Tools {
	tb.Helper()
	out, err := t.with(tb.TempDir(), map[string]string{name: value})
	testenv.Must(tb, err)
	return out
}

// newExtensionWorld returns a namespace of the management cluster of tests with extensions, with the feature gates RuntimeSDK,
// MachineTaintPropagation, InPlaceUpdates and ClusterTopologyWorkerVersionPinning. Tests use different names of ExtensionConfigs.
func newExtensionWorld(t *testing.T) *World {
	t.Helper()
	return extensible.World(t)
}

// extensionConfig returns an ExtensionConfig for a server, which is called for Clusters of this namespace.
func (w *World) extensionConfig(name string, server map[string]any) *unstructured.Unstructured {
	w.t.Helper()
	o := extensionConfig(name, server)
	labels := map[string]any{corev1.LabelMetadataName: w.Namespace}
	testenv.Must(w.t, unstructured.SetNestedMap(o.Object, labels, "spec", "namespaceSelector", "matchLabels"))
	return o
}

// byURL returns how to reach a server.
func byURL(s *extensiontest.Server) map[string]any {
	return map[string]any{"url": s.URL, "caBundle": base64.StdEncoding.EncodeToString(s.CA)}
}

// extensionConfig returns an ExtensionConfig for a server.
func extensionConfig(name string, server map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clientConfig": server}}}
	o.SetAPIVersion("runtime.cluster.x-k8s.io/v1alpha1")
	o.SetKind("ExtensionConfig")
	o.SetName(name)
	return o
}

// discovered returns the condition Discovered and the handlers in words.
func discovered(o *unstructured.Unstructured) string {
	out := ""
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == "Discovered" {
			out = fmt.Sprint(c["status"])
			if message, ok := c["message"]; ok {
				out += fmt.Sprint(" ", message)
			}
		}
	}
	handlers, _, _ := unstructured.NestedSlice(o.Object, "status", "handlers")
	for _, h := range handlers {
		out += fmt.Sprint(" ", h.(map[string]any)["name"])
	}
	return out
}

// TestExtensionsAreDiscovered registers servers of extensions that run outside of the management cluster, by URL: one with its CA in the
// ExtensionConfig, one with its CA in a Secret that does not exist yet, and one that does not respond, which delays none of the others.
func TestExtensionsAreDiscovered(t *testing.T) {
	t.Parallel()
	w := newExtensionWorld(t)
	handler := map[string]any{"name": "wait-for-backup", "requestHook": map[string]any{"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterDelete"}}
	server := extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Answers(map[string]any{
		"discovery": map[string]any{"status": "Success", "message": "", "handlers": []any{handler}},
	}))
	hanging := extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Hang())
	fromSecret := w.extensionConfig("from-secret", map[string]any{"url": server.URL})
	fromSecret.SetAnnotations(map[string]string{"runtime.cluster.x-k8s.io/inject-ca-from-secret": w.Namespace + "/ca"})
	for _, o := range []*unstructured.Unstructured{w.extensionConfig("hanging", byURL(hanging)), fromSecret, w.extensionConfig("by-url", byURL(server))} {
		testenv.Must(t, w.Client.Create(t.Context(), o))
	}
	w.discovered("by-url", "True wait-for-backup.by-url")
	w.discovered("from-secret", "False error in discovery: Secret "+w.Namespace+"/ca in annotation runtime.cluster.x-k8s.io/inject-ca-from-secret does not exist")
	w.Applied(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ca"}, Data: map[string][]byte{"ca.crt": server.CA}})
	w.discovered("from-secret", "True wait-for-backup.from-secret")
	w.discovered("hanging", "False error in discovery: the server did not respond in time")

	err := w.Client.Create(t.Context(), w.extensionConfig("plain", map[string]any{"url": "http://extension.example.com"}))
	if err == nil || !strings.Contains(err.Error(), "spec.clientConfig.url: Invalid value: must have the scheme https") {
		t.Errorf("the webhook answered %v", err)
	}
}

// TestExtensionsRequireTheGate checks that ExtensionConfigs are rejected without the feature gate.
func TestExtensionsRequireTheGate(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	err := w.Client.Create(t.Context(), extensionConfig("e", map[string]any{"url": "https://extension.example.com"}))
	if err == nil || !strings.Contains(err.Error(), "ExtensionConfigs require the feature gate RuntimeSDK") {
		t.Errorf("the webhook answered %v", err)
	}
}

// discovered waits until an ExtensionConfig has this condition and these handlers.
func (w *World) discovered(name, want string) {
	w.t.Helper()
	o := extensionConfig(name, nil)
	testenv.Eventually(w.t, "discovery", func() error {
		if err := w.Client.Get(w.t.Context(), client.ObjectKey{Name: name}, o); err != nil {
			return err
		}
		if got := discovered(o); got != want {
			return fmt.Errorf("ExtensionConfig %s is %q, want %q", name, got, want)
		}
		return nil
	})
}
