package journey

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// helmCluster is a management cluster whose operator is a Helm release.
type helmCluster struct {
	*operatorCluster
	program, chart string
	// values are those of all providers that Clusters with in-memory infrastructure require, in the local repository.
	values string
}

// newHelmed builds Helm.
func newHelmCluster(t *testing.T) *helmCluster {
	t.Helper()
	h := &helmCluster{operatorCluster: &operatorCluster{NewStandalone(t, shared.Management(t).Tools), t}}
	h.program = filepath.Join(t.TempDir(), "helm")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", h.program, "helm.sh/helm/v4/cmd/helm")
	build.Dir = filepath.Join(h.tools.Root, "release")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building Helm: %v\n%s", err, out)
	}
	h.chart = h.release("cluster-api", "cluster-api-operator-*.tgz")
	entry := func(label, file string) map[string]any {
		return map[string]any{"fetchConfig": map[string]any{"url": filepath.Join(filepath.Dir(h.tools.config), label, "latest", file)}}
	}
	values, err := json.Marshal(map[string]any{
		"core":           map[string]any{"cluster-api": entry("cluster-api", "core-components.yaml")},
		"bootstrap":      map[string]any{"kubeadm": entry("bootstrap-kubeadm", "bootstrap-components.yaml")},
		"controlPlane":   map[string]any{"kubeadm": entry("control-plane-kubeadm", "control-plane-components.yaml")},
		"infrastructure": map[string]any{"in-memory": entry("infrastructure-in-memory", "infrastructure-components-in-memory-development.yaml")},
		"manager":        map[string]any{"featureGates": map[string]any{"core": map[string]any{"ClusterTopology": true}}},
	})
	testenv.Must(t, err)
	h.values = filepath.Join(t.TempDir(), "values.yaml")
	testenv.Must(t, os.WriteFile(h.values, values, 0o600))
	return h
}

// oldChart returns the chart with other columns in the definition of core providers.
func (h *helmCluster) oldChart() string {
	h.t.Helper()
	dir := h.t.TempDir()
	if out, err := exec.CommandContext(h.t.Context(), "tar", "-xzf", h.chart, "-C", dir).CombinedOutput(); err != nil {
		h.t.Fatalf("extracting %s: %v\n%s", h.chart, err, out)
	}
	chart := filepath.Join(dir, "cluster-api-operator")
	file := filepath.Join(chart, "templates", "customresourcedefinition", "coreproviders.operator.cluster.x-k8s.io.yaml")
	text, err := os.ReadFile(file)
	testenv.Must(h.t, err)
	testenv.Must(h.t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "name: InstalledVersion", "name: OldVersion")), 0o600))
	return chart
}

// helm runs Helm for the release of the operator.
func (h *helmCluster) helm(verb string, args ...string) {
	h.t.Helper()
	command := []string{verb, "capi-operator"}
	if verb != "uninstall" {
		command = append(command, h.chart, "--values", h.values)
	}
	command = append(command, "--kubeconfig", h.kubeconfig(), "--namespace", "capi-operator-system", "--wait", "--timeout", "120s")
	if r := run(h.t.Context(), "", h.program, append(command, args...)...); r.Failed {
		h.t.Fatal(r)
	}
}

// argument waits until the manager of in-memory infrastructure has an argument, or does not have it.
func (h *helmCluster) argument(why, argument string, has bool) {
	h.t.Helper()
	testenv.Eventually(h.t, why, func() error {
		all := h.kubectl("", "get", "deployment", "-n", infrastructurePlace, "-o", "jsonpath={.items[0].spec.template.spec.containers[0].args}")
		if strings.Contains(all, argument) != has {
			return fmt.Errorf("arguments are %s", all)
		}
		return nil
	})
	h.wait("condition=Ready", infrastructurePlace, infrastructureObject)
}

// TestHelm installs operator and providers with the chart, changes values, takes one back, uninstalls the chart, after which everything but
// the operator is there, and installs it again.
func TestHelm(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	h := newHelmCluster(t)
	release := h.chart
	h.chart = h.oldChart()
	h.helm("install", "--create-namespace")
	h.chart = release
	for namespace, object := range map[string]string{
		corePlace: "coreprovider/cluster-api", bootstrapPlace: "bootstrapprovider/kubeadm", planePlace: "controlplaneprovider/kubeadm",
		infrastructurePlace: infrastructureObject,
	} {
		h.wait("condition=Ready", namespace, object)
	}
	h.helm("upgrade", "--set", "infrastructure.in-memory.manager.verbosity=4", "--set", "logLevel=3", "--set", "ipam.in-cluster.enabled=true",
		"--set", "ipam.in-cluster.fetchConfig.url="+filepath.Join(filepath.Dir(h.tools.config), "ipam-in-cluster", "latest", "ipam-components.yaml"))
	h.wait("condition=Ready", "capi-ipam-in-cluster-system", "ipamprovider/in-cluster")
	h.argument("a value is changed", `"--v=4"`, true)
	if columns := h.kubectl("", "get", "coreproviders", "-A"); !strings.Contains(columns, "INSTALLEDVERSION") || strings.Contains(columns, "OLDVERSION") {
		t.Errorf("the definition is not upgraded: %s", columns)
	}
	own := h.kubectl("", "get", "deployment", "-n", "capi-operator-system", "-o", "jsonpath={.items[0].spec.template.spec.containers[0].args}")
	if !strings.Contains(own, `"--v=3"`) {
		t.Errorf("the operator has the arguments %s", own)
	}
	h.helm("upgrade")
	h.argument("a value is taken back", `"--v=4"`, false)

	h.helm("uninstall")
	if left := h.kubectl("", "get", "deployments,services,serviceaccounts,configmaps", "-n", "capi-operator-system", "-l", "clusterctl.cluster.x-k8s.io/core"); left != "" {
		t.Errorf("left of the chart: %s", left)
	}
	if left := h.kubectl("", "get", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "-l", "clusterctl.cluster.x-k8s.io/core", "-o", "name"); left != "" {
		t.Errorf("left of the chart: %s", left)
	}
	h.wait("condition=Ready", infrastructurePlace, infrastructureObject)
	h.wait("condition=Available", infrastructurePlace, "deployment/capim-controller-manager")
	h.kubectl("", "get", "ipamprovider/in-cluster", "-n", "capi-ipam-in-cluster-system")

	h.helm("install", "--set", "infrastructure.in-memory.manager.verbosity=5")
	h.argument("a value is changed with an installation", `"--v=5"`, true)
}
