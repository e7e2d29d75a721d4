package readonly_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/cluster-api/standalone/internal/readonly"
)

func TestReads(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, method, path, body string
		header                     http.Header
		want                       bool
	}{
		{reason: "an object", method: http.MethodGet, path: "/api/v1/namespaces/ns/secrets/s", want: true},
		{reason: "a watch", method: http.MethodGet, path: "/api/v1/nodes?watch=true", want: true},
		{reason: "an object with the name of a subresource", method: http.MethodGet, path: "/api/v1/namespaces/exec/configmaps/proxy", want: true},
		{reason: "below another path", method: http.MethodGet, path: "/k8s/clusters/c/api/v1/nodes", want: true},
		{reason: "a HEAD is not needed", method: http.MethodHead, path: "/api/v1/nodes"},
		{reason: "a creation", method: http.MethodPost, path: "/api/v1/nodes"},
		{reason: "a creation that only asks", method: http.MethodPost, path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
		{reason: "a dry run", method: http.MethodPatch, path: "/api/v1/nodes/n?dryRun=All"},
		{reason: "an update", method: http.MethodPut, path: "/api/v1/nodes/n"},
		{reason: "a deletion", method: http.MethodDelete, path: "/api/v1/nodes/n"},
		{reason: "an unknown method", method: "get", path: "/api/v1/nodes/n"},
		{reason: "a GET with a body", method: http.MethodGet, path: "/api/v1/nodes/n", body: "{}"},
		{reason: "a program in a Pod, over a WebSocket", method: http.MethodGet, path: "/api/v1/namespaces/ns/pods/p/exec?command=rm"},
		{reason: "a port of a Pod", method: http.MethodGet, path: "/k8s/api/v1/namespaces/ns/pods/p/portforward"},
		{reason: "what is behind a Service", method: http.MethodGet, path: "/api/v1/namespaces/ns/services/s/proxy/delete"},
		{reason: "what is behind a Node", method: http.MethodGet, path: "/api/v1/nodes/n/proxy/run"},
		{reason: "another protocol", method: http.MethodGet, path: "/api/v1/nodes", header: http.Header{"Upgrade": {"websocket"}}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			r, err := http.NewRequestWithContext(t.Context(), tc.method, "https://server"+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(r.Header, tc.header)
			if got := readonly.Reads(r); got != tc.want {
				t.Errorf("it reads: %t", got)
			}
		})
	}
}

// No verb of a client reaches the server but those that read.
func TestConfig(t *testing.T) {
	t.Parallel()
	var arrived []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived = append(arrived, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	c, err := kubernetes.NewForConfig(readonly.Config(config))
	if err != nil {
		t.Fatal(err)
	}
	maps := c.CoreV1().ConfigMaps("ns")
	for verb, write := range map[string]func() error{
		"create": func() error {
			_, err := maps.Create(t.Context(), &corev1.ConfigMap{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		},
		"update": func() error {
			_, err := maps.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.UpdateOptions{})
			return err
		},
		"patch": func() error {
			_, err := maps.Patch(t.Context(), "c", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
			return err
		},
		"delete": func() error { return maps.Delete(t.Context(), "c", metav1.DeleteOptions{}) },
		"delete all": func() error {
			return maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		},
	} {
		if err := write(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only reading") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if len(arrived) > 0 {
		t.Errorf("the server got %v", arrived)
	}
	if _, err := maps.Get(t.Context(), "c", metav1.GetOptions{}); err != nil || len(arrived) != 1 {
		t.Errorf("reading: %v, the server got %v", err, arrived)
	}
	if config.WrapTransport != nil {
		t.Error("the configuration of the caller has changed")
	}
}
