package permission

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/test/managers"
)

// TestTestExtensionUsesItsPermissions is TestManagersUseTheirPermissions for the test extension. It calls a hook as the core manager does.
func TestTestExtensionUsesItsPermissions(t *testing.T) {
	t.Parallel()
	w := start(t, managers.Programs()[0], managers.TestExtension())
	core, extension := w.managers[0], w.managers[1]
	w.managers = w.managers[1:]
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	answers := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c-test-extension"},
		Data:       map[string]string{"BeforeClusterCreate": "{message: later, retryAfterSeconds: 5}"},
	}
	for _, o := range []client.Object{namespace, answers} {
		if err := w.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var response map[string]any
	w.eventually("a response of the extension", func(ctx context.Context) (err error) {
		response, err = w.callExtension(ctx, extension, "beforeclustercreate/before-cluster-create", map[string]any{
			"cluster": map[string]any{"metadata": map[string]any{"namespace": w.namespace, "name": "c"}},
		})
		return err
	})
	if response["message"] != "later" {
		t.Errorf("the response is %v", response)
	}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(answers), answers); err != nil || !strings.Contains(answers.Data["BeforeClusterCreate.calls"], "calls: 1") {
		t.Errorf("the call was not recorded: %v, %v", answers.Data, err)
	}
	if code, _ := w.scrape(extension.diagnostics, w.scraper()); code != http.StatusOK {
		t.Errorf("metrics: %d", code)
	}
	w.compare()
	if err := core.Stop(); err != nil {
		t.Error(err)
	}
}

// callExtension calls a handler with the CA in the extension's Secret.
func (w *world) callExtension(ctx context.Context, extension component, path string, request map[string]any) (map[string]any, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: extension.connection.Namespace, Name: "test-extension-webhook-service-cert"}
	if err := w.Client.Get(ctx, key, secret); err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(secret.Data["ca.crt"])
	caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: authorities, ServerName: "test-extension-webhook-service." + key.Namespace + ".svc", MinVersion: tls.VersionTLS12,
	}}}
	defer caller.CloseIdleConnections()
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("https://localhost:%d/hooks.runtime.cluster.x-k8s.io/v1alpha1/%s", extension.WebhookPort, path)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := caller.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var response map[string]any
	return response, json.NewDecoder(answer.Body).Decode(&response)
}
