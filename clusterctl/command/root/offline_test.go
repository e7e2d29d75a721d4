package root

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

func TestEveryCommandIsDocumented(t *testing.T) {
	streams, _ := iostreams.Test()
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("%s: Short, Long and Example must be set", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(NewCmd(factory.New(streams, func(string) (string, bool) { return "", false }, nil)))
}

const wantCluster = `apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata:
  name: toy
  namespace: default
spec: {}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: c1
  namespace: default
spec:
  clusterNetwork:
    pods:
      cidrBlocks:
      - 192.168.0.0/16
    serviceDomain: cluster.local
  topology:
    class: toy
    controlPlane:
      replicas: 3
    version: v1.29.0
    workers:
      machineDeployments:
      - class: default-worker
        name: md-0
        replicas: 2
`

func TestGenerateClusterWithoutManagementCluster(t *testing.T) {
	c := newCLI(t)
	r := c.with("WORKER_MACHINE_COUNT", "2").works("generate", "cluster", "c1", "-i", "toy:v1.0.0", "--kubernetes-version", "v1.29.0", "--controlplane-machine-count=3")
	if diff := cmp.Diff(wantCluster, r.Out); diff != "" || r.Err != "" {
		t.Errorf("a provider with version needs no cluster: %s -want +got:\n%s", r.Err, diff)
	}
	r = c.with("WORKER_MACHINE_COUNT", "2").with("KUBERNETES_VERSION", "v1.29.0").works("generate", "cluster", "c1", "-i", "toy", "--control-plane-machine-count=3")
	if diff := cmp.Diff(wantCluster, r.Out); diff != "" || !strings.Contains(r.Err, "Using the latest version of toy") {
		t.Errorf("without version and cluster the latest is taken, and said: %s -want +got:\n%s", r.Err, diff)
	}
	file := filepath.Join(t.TempDir(), "out.yaml")
	r = c.with("TOY_PAUSED", "true").works("generate", "cluster", "c1", "-i", "toy", "-f", "small", "-n", "foo", "--write-to", file)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata:\n  name: c1\n  namespace: foo\nspec:\n  paused: true\n"
	if diff := cmp.Diff(want, string(raw)); diff != "" || r.Out != "" {
		t.Errorf("a flavor in a namespace to a file: %q -want +got:\n%s", r.Out, diff)
	}
	r = c.runWithInput("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${CLUSTER_NAME}'}\n", "generate", "cluster", "c1", "--from", "-")
	want = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c1\n  namespace: default\n"
	if diff := cmp.Diff(want, r.Out); diff != "" || r.Failed {
		t.Errorf("standard input: %s -want +got:\n%s", r.Err, diff)
	}
}

func TestGenerateClusterListVariables(t *testing.T) {
	want := `Required Variables:
  - KUBERNETES_VERSION

Optional Variables:
  - CLUSTER_NAME                 (defaults to c1)
  - CONTROL_PLANE_MACHINE_COUNT  (defaults to 1)
  - NAMESPACE                    (defaults to current Namespace in the KubeConfig file)
  - POD_CIDR                     (defaults to ["192.168.0.0/16"])
  - SERVICE_DOMAIN               (defaults to "cluster.local")
  - WORKER_MACHINE_COUNT         (defaults to 4)

`
	r := newCLI(t).with("WORKER_MACHINE_COUNT", "4").works("generate", "cluster", "c1", "-i", "toy:v1.0.0", "--list-variables")
	if diff := cmp.Diff(want, r.Out); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r = newCLI(t).works("generate", "cluster", "-i", "toy:v1.0.0", "--list-variables")
	if !strings.Contains(r.Out, "  - CLUSTER_NAME\n") {
		t.Errorf("without a name: %s", r.Out)
	}
}

func TestGenerateProvider(t *testing.T) {
	c := newCLI(t)
	base, err := filepath.Abs("testdata/repository")
	if err != nil {
		t.Fatal(err)
	}
	want := `Name:               toy
Type:               InfrastructureProvider
URL:                ` + base + `/infrastructure-toy/
Version:            v1.1.0
File:               infrastructure-components.yaml
TargetNamespace:    toy-system
Variables:
  - TOY_TOKEN
Images:
  - registry.example/toy/infrastructure:v1.1.0

`
	if diff := cmp.Diff(want, c.works("generate", "provider", "-i", "toy", "--describe").Out); diff != "" {
		t.Errorf("--describe: -want +got:\n%s", diff)
	}
	raw := c.works("generate", "provider", "-i", "toy:v1.0.0", "--raw").Out
	if !strings.Contains(raw, "token: ${TOY_TOKEN}\n") || !strings.Contains(raw, "infrastructure:v1.0.0") {
		t.Errorf("--raw must keep variables:\n%s", raw)
	}
	made := c.with("TOY_TOKEN", "x").works("generate", "provider", "-i", "toy", "-n", "elsewhere").Out
	if !strings.Contains(made, "token: x\n") || strings.Contains(made, "namespace: toy-system") || !strings.Contains(made, "namespace: elsewhere") {
		t.Errorf("variables and namespace must be replaced:\n%s", made)
	}
}

func TestGenerateYAML(t *testing.T) {
	c := newCLI(t)
	const in = "kind: A\napiVersion: v1\nmetadata: {name: '${B}'}\nc: ${C:=3}\n"
	if r := c.with("B", "b").runWithInput(in, "generate", "yaml"); r.Out != "apiVersion: v1\nc: 3\nkind: A\nmetadata:\n  name: b\n" {
		t.Errorf("got %+v", r)
	}
	if r := c.runWithInput(in, "generate", "yaml", "--list-variables"); r.Out != "Variables:\n  - B\n  - C\n\n" {
		t.Errorf("got %+v", r)
	}
	if r := c.with("B", "b").runWithInput(in, "generate", "yaml", "t.yaml"); !strings.Contains(r.Err, `the argument "t.yaml" is ignored: to read a file, use --from t.yaml`) || r.Out == "" {
		t.Errorf("got %+v", r)
	}
	if r := c.runWithInput("kind: A\n", "generate", "yaml", "--list-variables"); r.Out != "\n" {
		t.Errorf("got %+v", r)
	}
}

func TestConfigRepositories(t *testing.T) {
	c := newCLI(t)
	table := c.works("config", "repositories").Out
	if !strings.HasPrefix(table, "NAME ") || !strings.Contains(table, "https://github.com/kubernetes-sigs/cluster-api-provider-aws/releases/latest/ ") {
		t.Errorf("got:\n%s", table)
	}
	if list := c.works("config", "repositories", "-o", "yaml").Out; !strings.Contains(list, "- File: infrastructure-components.yaml\n  Name: aws\n  ProviderType: InfrastructureProvider\n  URL: https://github.com/kubernetes-sigs/cluster-api-provider-aws/releases/latest/\n") {
		t.Errorf("got:\n%s", list)
	}
}

func TestListImagesWithoutCluster(t *testing.T) {
	want := `registry.example/jetstack/cert-manager-controller:v1.14.4
registry.example/toy/bootstrap:v1.0.0
registry.example/toy/control-plane:v1.0.0
registry.example/toy/core:v1.0.0
registry.example/toy/infrastructure:v1.1.0
`
	if diff := cmp.Diff(want, newCLI(t).works("init", "list-images", "-i", "toy", "--addon", "certified").Out); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCompletion(t *testing.T) {
	c := newCLI(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := c.works("completion", shell).Out; !strings.Contains(out, "clusterctl") {
			t.Errorf("%s: got:\n%s", shell, out)
		}
	}
	if out := c.works("__complete", "init", "--infrastructure", "t").Out; !strings.Contains(out, "toy\n") {
		t.Errorf("providers must be completed, got:\n%s", out)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kc")
	writeKubeconfig(t, kubeconfig, "https://127.0.0.1:1")
	if out := c.works("__complete", "init", "--kubeconfig", kubeconfig, "--kubeconfig-context", "").Out; !strings.Contains(out, "one\n") {
		t.Errorf("contexts must be completed, got:\n%s", out)
	}
}

func writeKubeconfig(t *testing.T, path, server string) {
	t.Helper()
	content := "apiVersion: v1\nkind: Config\ncurrent-context: one\ncontexts: [{name: one, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: '" + server + "'}}]\nusers: [{name: u, user: {}}]\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFindPlugin(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"clusterctl-foo", "clusterctl-init", "clusterctl-generate-cluster", "clusterctl-help"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700); err != nil { // It must be executable.
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	streams, _ := iostreams.Test()
	cmd := NewCmd(factory.New(streams, func(string) (string, bool) { return "", false }, nil))
	tests := map[string]struct {
		reason string
		args   []string
		want   bool
	}{
		"Plugin":  {"An unknown command may be a plugin.", []string{"foo", "--x"}, true},
		"Command": {"Commands cannot be replaced.", []string{"init"}, false},
		"Sub":     {"Nor can what is below them.", []string{"generate", "cluster"}, false},
		"Help":    {"Nor can help.", []string{"help"}, false},
		"Shell":   {"Nor can what shells call.", []string{"__completeNoDesc", "foo"}, false},
		"None":    {"Without words there is no plugin.", nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, got := findPlugin(cmd, tc.args); got != tc.want {
				t.Errorf("%s\nfindPlugin(%v): got %v", tc.reason, tc.args, got)
			}
		})
	}
}
