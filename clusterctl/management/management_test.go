package management

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// answers is an API server that gives one answer after the other, the last one again and again.
type answers []func() (*version.Info, error)

func (a *answers) ServerVersion() (*version.Info, error) {
	answer := (*a)[0]
	if len(*a) > 1 {
		*a = (*a)[1:]
	}
	return answer()
}

func TestCheckKubernetes(t *testing.T) {
	runs := func(v string) func() (*version.Info, error) {
		return func() (*version.Info, error) { return &version.Info{GitVersion: v}, nil }
	}
	refuses := func() (*version.Info, error) { return nil, errors.New("connection refused") }
	tests := map[string]struct {
		reason  string
		answers answers
		waited  int
		err     string
	}{
		"New":     {reason: "A version that is new enough is fine, with a vendor's suffix, too.", answers: answers{runs("v1.30.2-eks-1234")}},
		"Old":     {reason: "An old version is rejected, and the error has both versions.", answers: answers{runs("v1.19.9")}, err: "runs Kubernetes v1.19.9, but at least v1.20.0 is required"},
		"Starts":  {reason: "An API server that is starting is waited for, with one message.", answers: answers{refuses, refuses, runs("v1.30.0")}, waited: 1},
		"Silent":  {reason: "The error names an unresponsive API server.", answers: answers{refuses}, waited: 1, err: "cannot get the version of the management cluster at https://x: connection refused"},
		"Strange": {reason: "An invalid version is an error.", answers: answers{runs("latest")}, err: `has an invalid Kubernetes version "latest"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			waited := 0
			c := &Cluster{Host: "https://x", Versions: &tc.answers}
			err := c.CheckKubernetes(t.Context(), MinKubernetes, wait.Backoff{Duration: time.Millisecond, Steps: 4}, func(error) { waited++ })
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s\nCheckKubernetes(): want error %q, got: %v", tc.reason, tc.err, err)
			}
			if waited != tc.waited {
				t.Errorf("%s\nCheckKubernetes(): want %d messages, got %d", tc.reason, tc.waited, waited)
			}
		})
	}
}

func TestCheckContract(t *testing.T) {
	crd := func(versions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "clusters.cluster.x-k8s.io"}, "spec": map[string]any{"versions": versions},
		}}
	}
	v := func(name string, served bool) any { return map[string]any{"name": name, "served": served} }
	tests := map[string]struct {
		reason string
		crd    *unstructured.Unstructured
		err    string
		none   bool
	}{
		"Good":  {reason: "v1beta1 alone.", crd: crd(v("v1alpha4", false), v("v1beta1", true))},
		"Both":  {reason: "v1beta1 beside v1beta2.", crd: crd(v("v1beta2", true), v("v1beta1", true))},
		"Other": {reason: "v1beta1 must be served.", crd: crd(v("v1alpha4", true), v("v1beta1", false)), err: `serves Clusters in versions ["v1alpha4"]`},
		"None":  {reason: "No CRD means no management cluster.", err: "run `clusterctl init` first", none: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder()
			if tc.crd != nil {
				b = b.WithObjects(tc.crd)
			}
			err := (&Cluster{Host: "https://x", Client: b.Build()}).CheckContract(t.Context())
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s\nCheckContract(): want error %q, got: %v", tc.reason, tc.err, err)
			}
			if errors.Is(err, ErrNotInitialized) != tc.none {
				t.Errorf("%s\nCheckContract(): ErrNotInitialized: %v", tc.reason, err)
			}
		})
	}
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const contexts = "apiVersion: v1\nkind: Config\nclusters: [{name: k, cluster: {server: 'https://x'}}]\nusers: [{name: u, user: {}}]\ncontexts: [{name: a, context: {cluster: k, user: u, namespace: foo}}, {name: b, context: {cluster: k, user: u}}, {name: c, context: {cluster: gone, user: u}}]\n"
	good := write("good", contexts+"current-context: a\n")
	tests := map[string]struct {
		reason     string
		kubeconfig Kubeconfig
		want, err  string
	}{
		"Current":   {reason: "The current context's namespace is used.", kubeconfig: Kubeconfig{Path: good}, want: "foo"},
		"Other":     {reason: "A context can be selected; its namespace defaults to default.", kubeconfig: Kubeconfig{Path: good, Context: "b"}, want: "default"},
		"Unknown":   {reason: "The error lists the existing contexts.", kubeconfig: Kubeconfig{Path: good, Context: "x"}, err: `has no context "x": choose one of a, b, c with --kubeconfig-context`},
		"NoCluster": {reason: "A context without a cluster is rejected.", kubeconfig: Kubeconfig{Path: good, Context: "c"}, err: `context "c" of the kubeconfig`},
		"NoCurrent": {reason: "Without a current context one must be selected.", kubeconfig: Kubeconfig{Path: write("none", contexts)}, err: "has no current context: choose one of a, b, c"},
		"Empty":     {reason: "An empty file counts as no kubeconfig.", kubeconfig: Kubeconfig{Path: write("empty", "")}, err: "is missing or empty"},
		"Missing":   {reason: "A specified file must exist.", kubeconfig: Kubeconfig{Path: filepath.Join(dir, "nope")}, err: "cannot read the kubeconfig"},
		"Broken":    {reason: "The error names an invalid file.", kubeconfig: Kubeconfig{Path: write("broken", "{")}, err: "broken: "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tc.kubeconfig.Namespace()
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s\nNamespace(): want error %q, got: %v", tc.reason, tc.err, err)
			}
			if got != tc.want {
				t.Errorf("%s\nNamespace(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestInPod: without a kubeconfig, the ServiceAccount of a Pod is used, as kubectl does. One without access to the cluster is as good as no
// kubeconfig: it is that of a CI system, for example.
func TestInPod(t *testing.T) {
	status := http.StatusNotFound
	var authorization string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api", "/apis":
			fmt.Fprint(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apiextensions.k8s.io", "versions": [{"groupVersion": "apiextensions.k8s.io/v1", "version": "v1"}]}]}`)
		case "/apis/apiextensions.k8s.io/v1":
			fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apiextensions.k8s.io/v1", "resources": [{"name": "customresourcedefinitions", "kind": "CustomResourceDefinition"}]}`)
		default:
			w.WriteHeader(status)
			reason := map[int]metav1.StatusReason{http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden}[status]
			fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": %d, "reason": %q}`, status, reason)
		}
	}))
	defer server.Close()
	account := t.TempDir()
	for name, content := range map[string][]byte{
		"token": []byte("tok"), "namespace": []byte("ci\n"), "ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	} {
		if err := os.WriteFile(filepath.Join(account, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(account, "none"))
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	k := Kubeconfig{account: account}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Connect(k, "test"); !errors.Is(err, ErrNoKubeconfig) {
		t.Errorf("outside of a Pod: %v", err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	if _, err := Connect(Kubeconfig{account: account, Context: "mine"}, "test"); !errors.Is(err, ErrNoKubeconfig) {
		t.Errorf("a context that is selected must exist: %v", err)
	}
	c, err := Connect(k, "test")
	if err != nil {
		t.Fatal(err)
	}
	if c.Namespace != "ci" {
		t.Errorf("the namespace is %q", c.Namespace)
	}
	if err := c.CheckContract(t.Context()); !errors.Is(err, ErrNotInitialized) || authorization != "Bearer tok" {
		t.Errorf("got %v, with %q", err, authorization)
	}
	status = http.StatusForbidden
	if err := c.CheckContract(t.Context()); !errors.Is(err, ErrNoKubeconfig) || !strings.Contains(err.Error(), "the ServiceAccount of this Pod has no access") {
		t.Errorf("got %v", err)
	}
}

// TestRequestsCanBeCancelled: libraries find the transport below ours; otherwise they write a warning each time a watch ends.
func TestRequestsCanBeCancelled(t *testing.T) {
	below := &http.Transport{}
	wrapper, ok := http.RoundTripper(explaining{RoundTripper: below}).(utilnet.RoundTripperWrapper)
	if !ok || wrapper.WrappedRoundTripper() != http.RoundTripper(below) {
		t.Error("the transport cannot be found")
	}
}
