package journey

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// clusterctl runs a command that must succeed, and returns its output and messages.
func (o *operatorCluster) clusterctl(args ...string) string {
	o.t.Helper()
	r := o.run(args...)
	if r.Failed {
		o.t.Fatal(r)
	}
	return r.Out + r.Err
}

func (o *operatorCluster) run(args ...string) Result {
	return o.tools.Clusterctl(o.t.Context(), "", append(args, "--kubeconfig", o.kubeconfig())...)
}

// says checks words of a text.
func (o *operatorCluster) says(text string, words ...string) {
	o.t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			o.t.Errorf("%q is not in %s", word, text)
		}
	}
}

// TestOperatorCommands operates a management cluster with `clusterctl operator` alone: it declares providers, upgrades them and the operator,
// and deletes everything, while a Cluster exists.
func TestOperatorCommands(t *testing.T) {
	testenv.Soak(t) // Pages of the book have the same commands.
	t.Parallel()
	r := NewRepository(t, shared.Management(t).Tools)
	r.Release("v2.0.0")
	o := &operatorCluster{NewStandalone(t, r.Tools), t}

	rejected(t, o.run("operator", "init", "--infrastructure", "in-memory:v9.9.9"), "has no version v9.9.9")
	rejected(t, o.run("operator", "init", "--infrastructure", "in-memory", "--config-secret", "missing:default"), "Secret default/missing", "create it")
	rejected(t, o.run("upgrade", "operator"), "the operator is not installed")
	if found := o.kubectl("", "get", "namespaces", "-o", "name"); strings.Contains(found, "capi") {
		t.Errorf("refused commands created %s", found)
	}
	o.says(o.clusterctl("operator", "init", "--infrastructure", "in-memory"), "Installing the operator v2.0.0", "Declared infrastructure-in-memory v2.0.0 in namespace capim-system")
	for _, p := range declaredProviders() {
		o.installed(p, "v2.0.0")
	}
	before := o.generations()
	o.says(o.clusterctl("operator", "init", "--infrastructure", "in-memory"), "is declared already")
	if diff := cmp.Diff(before, o.generations()); diff != "" {
		t.Errorf("the same command again changes something (-before +after):\n%s", diff)
	}
	rejected(t, o.run("init", "--infrastructure", "in-memory:v2.0.1"), "is declared by InfrastructureProvider capim-system/in-memory")
	rejected(t, o.run("operator", "init", "--infrastructure", "in-memory:elsewhere"), "is in namespace capim-system, not in elsewhere")

	w := o.Management().World(t)
	c := w.Subject(NewCluster("kept", w.Class(w.Tools.ProjectTemplate())).Variable("startupDuration", "100ms").Workers(1).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1))
	machines := c.Snapshot()

	r.Release("v2.0.1")
	o.says(o.clusterctl("upgrade", "plan"), "The operator can be upgraded from v2.0.0 to v2.0.1", "clusterctl operator upgrade apply --contract v1beta1")
	rejected(t, o.run("upgrade", "apply", "--contract", "v1beta1"), "clusterctl operator upgrade apply --config ")
	rejected(t, o.run("operator", "upgrade", "apply", "--ipam", "in-cluster:v2.0.1"), "ipam-in-cluster is not installed")
	o.says(o.clusterctl("upgrade", "operator"), "v2.0.1")
	o.says(o.clusterctl("operator", "upgrade", "apply", "--infrastructure", "in-memory:v2.0.1"), "Changed InfrastructureProvider capim-system/in-memory from v2.0.0 to v2.0.1")
	o.clusterctl("operator", "upgrade", "apply", "--contract", "v1beta1")
	for _, p := range declaredProviders() {
		o.installed(p, "v2.0.1")
	}
	o.says(o.clusterctl("operator", "upgrade", "apply", "--contract", "v1beta1"), "All providers are up to date")
	o.says(o.kubectl("", "get", "deployment", "-n", "capi-operator-system", "-o", "jsonpath={.items[*].spec.template.spec.containers[*].image}"), ":v2.0.1")

	rejected(t, o.run("operator", "delete", "--infrastructure", "in-memory"), "cannot be deleted, because", "needs it")
	rejected(t, o.run("operator", "delete", "--core"), "needs the core provider")
	rejected(t, o.run("delete", "--infrastructure", "in-memory"), "clusterctl operator delete")
	c.Eventually("the Cluster keeps its Machines", Ready, SameMachines((*Snapshot).ControlPlane, machines), SameMachines((*Snapshot).Workers, machines))
	c.Gone()
	o.kubectl("", "delete", "clusterclasses,inmemoryclustertemplates,inmemorymachinetemplates,kubeadmcontrolplanetemplates,kubeadmconfigtemplates", "--all", "-A")
	o.clusterctl("operator", "delete", "--infrastructure", "in-memory:capim-system", "--include-crd", "--include-namespace")
	if crds := o.kubectl("", "get", "crds", "-o", "name"); strings.Contains(crds, "inmemory") || !strings.Contains(crds, "machines.cluster") {
		t.Errorf("the definitions of one provider were to be deleted, left: %s", crds)
	}
	o.clusterctl("delete", "--all", "--include-crd", "--include-namespace")
	o.eventually("the namespace of the operator is gone", func() string { return o.clusterctl("operator", "delete", "--all") }, "No provider is declared")
	if crds := o.kubectl("", "get", "crds", "-o", "name"); strings.Contains(crds, "operator.cluster") || strings.Contains(crds, "kubeadm") {
		t.Errorf("left: %s", crds)
	}
}

// generations returns the generations of all Deployments.
func (o *operatorCluster) generations() map[string]string {
	o.t.Helper()
	found := map[string]string{}
	const format = `jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {.metadata.generation}{"\n"}{end}`
	for line := range strings.Lines(o.kubectl("", "get", "deployments", "-A", "-o", format)) {
		name, generation, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[name] = generation
	}
	return found
}

// TestOperatorAirGap installs a provider from each kind of source that needs no other network: an OCI layout, a registry, and ConfigMaps that
// were preloaded from a registry.
func TestOperatorAirGap(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	o := &operatorCluster{NewStandalone(t, shared.Management(t).Tools), t}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	o.clusterctl("operator", "init")

	layout := filepath.Join(t.TempDir(), "layout")
	artifact := server.URL + "/capi/"
	for label, file := range map[string]string{
		"ipam-in-cluster": "ipam-components.yaml", "infrastructure-in-memory": "infrastructure-components-in-memory-development.yaml",
		"runtime-extension-test": "runtime-extension-components.yaml",
	} {
		folder := filepath.Dir(o.release(label, file))
		version := filepath.Base(folder)
		target := artifact + label + ":" + version
		if label == "ipam-in-cluster" {
			target = layout + ":" + version
		}
		o.tools.mustPublish(t, "--dir", folder, "--artifact-url", target)
	}
	version := filepath.Base(filepath.Dir(o.release("ipam-in-cluster", "ipam-components.yaml")))
	o.says(o.clusterctl("operator", "preload", "--runtime-extension", "test:test-system:"+version, "--artifact-url", artifact+"runtime-extension-test"),
		"Stored ConfigMap test-system/runtimeextension-test-"+version)
	for _, p := range []struct{ kind, name, namespace, fetch string }{
		{"IPAMProvider", "in-cluster", "ipam-system", "fetchConfig: {oci: " + layout + "}"},
		{"InfrastructureProvider", "in-memory", infrastructurePlace, "fetchConfig: {oci: \"" + artifact + "infrastructure-in-memory\"}"},
		{"RuntimeExtensionProvider", "test", "test-system", "fetchConfig: {selector: {matchLabels: {provider.cluster.x-k8s.io/name: test}}}"},
	} {
		o.kubectl(fmt.Sprintf(`
{apiVersion: v1, kind: Namespace, metadata: {name: %[3]s}}
---
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: %[1]s
metadata: {name: %[2]s, namespace: %[3]s}
spec:
  version: %[5]s
  %[4]s
`, p.kind, p.name, p.namespace, p.fetch, version), "apply", "-f", "-")
		o.wait("condition=Ready", p.namespace, strings.ToLower(p.kind)+"/"+p.name)
	}
	o.clusterctl("operator", "preload", "--existing")
	rejected(t, o.tools.publish(t, "--dir", t.TempDir(), "--artifact-url", layout+":v1.0.0"), "no metadata.yaml")
	rejected(t, o.tools.publish(t, "--dir", filepath.Dir(o.release("ipam-in-cluster", "ipam-components.yaml")), "--artifact-url", layout), "it has no tag")
}

func (t *Tools) publish(tb testing.TB, args ...string) Result {
	return t.Clusterctl(tb.Context(), "", append([]string{"operator", "publish"}, args...)...)
}

func (t *Tools) mustPublish(tb testing.TB, args ...string) {
	tb.Helper()
	if r := t.publish(tb, args...); r.Failed {
		tb.Fatal(r)
	}
}
