package management

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	v := func(name string, storage bool) any { return map[string]any{"name": name, "storage": storage} }
	tests := map[string]struct {
		reason string
		crd    *unstructured.Unstructured
		err    string
		none   bool
	}{
		"Good":  {reason: "The storage version counts.", crd: crd(v("v1alpha4", false), v("v1beta1", true))},
		"Other": {reason: "Another storage version is rejected.", crd: crd(v("v1alpha4", true), v("v1beta1", false)), err: "stores Clusters as v1alpha4"},
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
