package journey

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// declaredProvider is a provider of the local repository, as an object.
type declaredProvider struct{ kind, name, namespace, label, file string }

func (p declaredProvider) object() string { return strings.ToLower(p.kind) + "/" + p.name }

func declaredProviders() []declaredProvider {
	return []declaredProvider{
		{"CoreProvider", "cluster-api", corePlace, "cluster-api", "core-components.yaml"},
		{"BootstrapProvider", "kubeadm", bootstrapPlace, "bootstrap-kubeadm", "bootstrap-components.yaml"},
		{"ControlPlaneProvider", "kubeadm", planePlace, "control-plane-kubeadm", "control-plane-components.yaml"},
		{"InfrastructureProvider", "in-memory", infrastructurePlace, "infrastructure-in-memory", "infrastructure-components-in-memory-development.yaml"},
	}
}

// declare declares a provider, with the variables of the repository's configuration.
func (o *operatorCluster) declare(p declaredProvider, version string) {
	o.t.Helper()
	o.kubectl(fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: variables, namespace: %[3]s}
stringData: {CLUSTER_TOPOLOGY: "true", EXP_KUBEADM_BOOTSTRAP_FORMAT_IGNITION: "true"}
---
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: %[1]s
metadata: {name: %[2]s, namespace: %[3]s}
spec:
  version: %[4]s
  secretName: variables
  fetchConfig: {url: %[5]s}
`, p.kind, p.name, p.namespace, version, filepath.Join(filepath.Dir(o.tools.config), p.label, "latest", p.file)), "apply", "-f", "-")
}

// change changes the version of a provider, which comes from the repository.
func (o *operatorCluster) change(p declaredProvider, version string) {
	o.t.Helper()
	url := filepath.Join(filepath.Dir(o.tools.config), p.label, "latest", p.file)
	o.patch(p, fmt.Sprintf(`{"version": %q, "fetchConfig": {"selector": null, "url": %q}}`, version, url))
}

// installed waits until a provider has a version, and is ready.
func (o *operatorCluster) installed(p declaredProvider, version string) {
	o.t.Helper()
	o.wait("jsonpath={.status.installedVersion}="+version, p.namespace, p.object())
	o.wait("condition=Ready", p.namespace, p.object())
}

// TestOperatorAdoptsAndUpgrades takes over what clusterctl installed, which changes nothing, and is refused with other variables. Then it
// upgrades all providers at once, one of them first to a version that does not start, which is rolled back. All the while, webhooks answer,
// and a Cluster keeps its Machines. clusterctl does not interfere. It is not parallel: all providers start again at once, while every
// request to a webhook counts.
func TestOperatorAdoptsAndUpgrades(t *testing.T) {
	r := NewRepository(t, shared.Management(t).Tools)
	r.Release("v2.0.0")
	o := &operatorCluster{NewStandalone(t, r.Tools), t}
	if err := r.Tools.install(t.Context(), o.kubeconfig()); err != nil {
		t.Fatal(err)
	}
	w := o.Management().World(t)
	c := w.Subject(NewCluster("kept", w.Class(w.Tools.ProjectTemplate())).Workers(1).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
	before, answered, unchanged := c.Snapshot(), w.Admission(), w.deploymentGenerations()

	other := &operatorCluster{o.Standalone, t}
	other.tools = r.Tools.withVariable(t, "CAPI_MEMORY_LIMIT", "777Mi")
	refused := other.run("operator", "init")
	other.tools = r.Tools
	rejected(t, refused, "the operator would change Deployment capi-system/capi-controller-manager", "CAPI_MEMORY_LIMIT")
	o.clusterctl("operator", "init")
	providers := declaredProviders()
	for _, p := range providers {
		o.installed(p, "v2.0.0")
		o.says(o.kubectl("", "get", "events", "-n", p.namespace), "Adopted")
	}
	if diff := cmp.Diff(unchanged, w.deploymentGenerations()); diff != "" {
		t.Errorf("generations of Deployments (-before +after the adoption):\n%s", diff)
	}
	r.Release("v2.0.1")
	rejected(t, w.upgradeTo("v2.0.1"), "provider infrastructure-in-memory is declared by InfrastructureProvider capim-system/in-memory", "set spec.version of that object")
	rejected(t, w.Tools.Clusterctl(t.Context(), "", "delete", "--kubeconfig", w.Kubeconfig, "--infrastructure", "in-memory"), "delete that object")

	r.Edit("infrastructure-in-memory", "v2.0.1", strings.NewReplacer("/capim-manager:", "/another-manager:").Replace)
	infrastructure := providers[3]
	o.change(infrastructure, "v2.0.1")
	o.eventually("the version that does not start is rolled back", func() string {
		return o.kubectl("", "get", infrastructure.object(), "-n", infrastructure.namespace, "-o", `jsonpath={.status.conditions[?(@.type=="ProviderInstalled")].message}`)
	}, "rolled back to v2.0.0")
	o.installed(infrastructure, "v2.0.0")

	r.Edit("infrastructure-in-memory", "v2.0.1", strings.NewReplacer("/another-manager:", "/capim-manager:").Replace)
	o.change(infrastructure, "v2.0.0")
	o.wait("condition=ProviderInstalled", infrastructure.namespace, infrastructure.object())
	for _, p := range providers {
		o.change(p, "v2.0.1")
	}
	for _, p := range providers {
		o.installed(p, "v2.0.1")
	}
	for _, d := range w.deployments() {
		if image := d.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":v2.0.1") || d.Status.AvailableReplicas != 1 {
			t.Errorf("Deployment %s has image %s and %d available replicas", d.Name, image, d.Status.AvailableReplicas)
		}
	}
	c.Eventually("the Cluster keeps its Machines", Ready, SameMachines((*Snapshot).ControlPlane, before), SameMachines((*Snapshot).Workers, before), c.WorkloadMatches)
	if n := answered(); n < 100 {
		t.Errorf("webhooks answered %d requests only", n)
	}
	c.Gone()
}

// deploymentGenerations returns the generations of the providers' Deployments.
func (w *World) deploymentGenerations() map[string]int64 {
	w.t.Helper()
	found := map[string]int64{}
	for _, d := range w.deployments() {
		found[d.Name] = d.Generation
	}
	return found
}

// upgradeTo upgrades the infrastructure provider with clusterctl.
func (w *World) upgradeTo(version string) Result {
	w.t.Helper()
	return w.Tools.Clusterctl(w.t.Context(), "", "upgrade", "apply", "--kubeconfig", w.Kubeconfig, "--infrastructure", w.Tools.Infrastructure+":"+version)
}
