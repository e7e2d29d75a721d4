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

func TestMistakes(t *testing.T) {
	c := newCLI(t)
	dir := t.TempDir()
	broken, closed := filepath.Join(dir, "broken"), filepath.Join(dir, "closed")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	writeKubeconfig(t, closed, "https://127.0.0.1:1")
	generate := func(args ...string) []string { return append([]string{"generate", "cluster", "c1"}, args...) }
	tests := map[string]struct {
		reason string
		args   []string
		texts  []string
	}{
		"Command":       {"An unknown command is named.", []string{"frobnicate"}, []string{`unknown command "frobnicate"`}},
		"Similar":       {"A similar command is suggested.", []string{"inti"}, []string{`unknown command "inti" for "clusterctl": did you mean "init"? Otherwise see `}},
		"SubCommand":    {"The error names an unknown subcommand.", []string{"generate", "x"}, []string{`unknown command "x" for "clusterctl generate"`}},
		"SubSimilar":    {"A similar subcommand is suggested.", []string{"get", "kubeconfg", "c1"}, []string{`did you mean "kubeconfig"?`, "see `clusterctl get --help`"}},
		"Number":        {"An invalid number is an error without jargon.", []string{"generate", "cluster", "c1", "--worker-machine-count", "many"}, []string{`--worker-machine-count is "many": it must be an integer: see`}},
		"Bool":          {"What is neither true nor false is said in words.", []string{"delete", "cluster", "c1", "--wait=maybe"}, []string{`--wait is "maybe": it must be true or false: see`}},
		"Flag":          {"An unknown flag leads to help.", []string{"init", "--x"}, []string{"unknown flag: --x: see `clusterctl init --help`"}},
		"NoName":        {"A missing name is an error.", []string{"generate", "cluster"}, []string{"the cluster name is required"}},
		"Variable":      {"The error names a template's missing variables, and how to set them.", generate("-i", "toy:v1.0.0"), []string{"required variable KUBERNETES_VERSION", "environment", "configuration file"}},
		"Flavor":        {"The flavors there are are listed.", generate("-i", "toy:v1.0.0", "-f", "huge"), []string{`infrastructure-toy v1.0.0 has no template of flavor "huge"`, "choose one of small"}},
		"Provider":      {"A similar provider is suggested.", generate("-i", "toys:v1.0.0"), []string{`did you mean "toy"?`}},
		"ProviderType":  {"The flag of the right type is proposed.", generate("-i", "kubeadm:v1.0.0"), []string{"use --bootstrap kubeadm"}},
		"Version":       {"An invalid version is an error.", generate("-i", "toy:latest"), []string{`version "latest" is not a semantic version`}},
		"NoVersion":     {"The error lists the existing versions.", generate("-i", "toy:v9.9.9"), []string{"infrastructure-toy has no version v9.9.9; the latest versions are v1.1.0, v1.0.0"}},
		"Kubernetes":    {"The error names the flag.", generate("-i", "toy:v1.0.0", "--kubernetes-version", "one"), []string{"--kubernetes-version", `version "one"`}},
		"Count":         {"Flag and bound are named.", generate("-i", "toy:v1.0.0", "--control-plane-machine-count", "0"), []string{"--control-plane-machine-count", `is "0": it must be an integer, at least 1`}},
		"ClusterName":   {"An invalid name is rejected.", []string{"generate", "cluster", "C_1", "-i", "toy:v1.0.0"}, []string{`invalid cluster name "C_1"`}},
		"Namespace":     {"An invalid namespace is rejected.", generate("-i", "toy:v1.0.0", "-n", "N_1"), []string{`invalid target namespace "N_1"`}},
		"Sources":       {"Two sources are mutually exclusive.", generate("-i", "toy:v1.0.0", "--from", "x"), []string{"--infrastructure/--flavor and --from are mutually exclusive"}},
		"File":          {"The error names a missing file.", generate("--from", filepath.Join(dir, "none.yaml")), []string{"cannot read the template from --from", "none.yaml"}},
		"HTTP":          {"Unencrypted sources are refused.", generate("--from", "http://x.example/t.yaml"), []string{"use https"}},
		"NoKubeconfig":  {"Without a kubeconfig the error shows an alternative.", generate(), []string{"--infrastructure {name}:{version} works without a management cluster", "no kubeconfig"}},
		"Kubeconfig":    {"The error names an invalid kubeconfig.", []string{"get", "kubeconfig", "c1", "--kubeconfig", broken}, []string{"cannot read the kubeconfig " + broken, "--kubeconfig"}},
		"Context":       {"The error lists the existing contexts.", []string{"get", "kubeconfig", "c1", "--kubeconfig", closed, "--kubeconfig-context", "two"}, []string{`has no context "two"`, "choose one of one"}},
		"Refused":       {"The error names an unresponsive API server.", []string{"get", "kubeconfig", "c1", "--kubeconfig", closed}, []string{"127.0.0.1:1", "connection refused"}},
		"ConfigMissing": {"A specified configuration must exist.", []string{"version", "--config", filepath.Join(dir, "none")}, []string{"cannot read the clusterctl configuration", "none"}},
		"ConfigBroken":  {"The error names an invalid configuration.", []string{"version", "--config", broken}, []string{"invalid clusterctl configuration " + broken}},
		"Output":        {"The formats there are are listed.", []string{"version", "-o", "xml"}, []string{`--output "xml" is not supported: use short, yaml or json`}},
		"NoFlag":        {"One provider must be named.", []string{"generate", "provider"}, []string{"at least one of the flags"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			local := &cli{t: t, env: c.env}
			local.fails(tc.reason, tc.args, tc.texts...)
		})
	}
	if r := c.with("CLUSTERCTL_LOG_LEVEL", "loud").run("version"); !r.Failed || !strings.Contains(r.Err, `CLUSTERCTL_LOG_LEVEL is "loud"`) {
		t.Errorf("a log level that is not a number must be rejected, got %+v", r)
	}
	if r := c.with("CLUSTERCTL_LOG_LEVEL", "5").run("version"); !strings.Contains(r.Err, "Using configuration") {
		t.Errorf("the variable sets the verbosity like -v, got %+v", r)
	}
	if r := c.run("-v", "5", "version", "-o", "xml"); !strings.Contains(r.Err, "\n  *errors.errorString: --output") && !strings.Contains(r.Err, "\n  *fmt") {
		t.Errorf("from -v 5 on errors are shown in detail, got:\n%s", r.Err)
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
