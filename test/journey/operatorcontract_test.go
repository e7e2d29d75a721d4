package journey

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// EditMetadata changes the metadata of a provider's version.
func (r *Repository) EditMetadata(label, version string, change func(metadata string) string) {
	r.t.Helper()
	file := filepath.Join(r.dir, label, version, "metadata.yaml")
	raw, err := os.ReadFile(file)
	testenv.Must(r.t, err)
	testenv.Must(r.t, os.WriteFile(file, []byte(change(string(raw))), 0o600))
}

// patch changes the spec of a provider.
func (o *operatorCluster) patch(p declaredProvider, spec string) {
	o.t.Helper()
	o.kubectl("", "patch", p.object(), "-n", p.namespace, "--type", "merge", "-p", `{"spec": `+spec+`}`)
}

// counts returns the replicas of the Deployments of all providers, in order, and their number before the pause.
func (o *operatorCluster) counts(providers []declaredProvider) string {
	o.t.Helper()
	var all []string
	for _, p := range providers {
		all = append(all, o.kubectl("", "get", "deployments", "-n", p.namespace, "-o",
			`jsonpath={.items[0].spec.replicas}{" of "}{.items[0].metadata.annotations.operator\.cluster\.x-k8s\.io/paused-replicas}`))
	}
	return strings.Join(all, ", ")
}

// TestOperatorChangesTheContract upgrades all providers to versions whose contract the core provider did not know, which needs all of them to be paused, while a Cluster
// exists.
func TestOperatorChangesTheContract(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	r := NewRepository(t, shared.Management(t).Tools)
	r.Release("v2.0.0")
	providers := declaredProviders()
	o := &operatorCluster{NewStandalone(t, r.Tools), t}
	c := o.connect()
	o.install()
	r.Release("v2.0.1")
	for _, p := range providers {
		r.EditMetadata(p.label, "v2.0.1", strings.NewReplacer("v1beta1", "v1beta3").Replace)
		o.kubectl("", "create", "namespace", p.namespace)
		o.declare(p, "v2.0.0")
	}
	core, infrastructure := providers[0], providers[3]
	o.patch(infrastructure, `{"deployment": {"replicas": 2}}`)
	for _, p := range providers {
		o.installed(p, "v2.0.0")
	}
	w := o.Management().World(t)
	cluster := w.Subject(NewCluster("kept", w.Class(w.Tools.ProjectTemplate())).Variable("startupDuration", "100ms").Workers(1).Build())
	cluster.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1))
	before := cluster.Snapshot()
	refused := func(p declaredProvider, words ...string) {
		t.Helper()
		waitForCondition(t, c, p.kind, p.namespace, p.name, "PreflightCheckPassed", append([]string{"False CAPIVersionIncompatibility: "}, words...)...)
	}

	// Nothing is paused, and then one of them is.
	o.patch(core, `{"version": "v2.0.1"}`)
	refused(core, "version v2.0.1 works with providers for contract v1beta3, but ", " implements v1beta1: ", "pause all providers (spec.paused)")
	o.patch(core, `{"paused": true}`)
	o.wait("jsonpath={.status.installedVersion}=v2.0.0", core.namespace, core.object())
	refused(core, "pause all providers (spec.paused)")

	for _, p := range providers[1:] {
		o.patch(p, `{"paused": true}`)
	}
	o.wait("jsonpath={.status.installedVersion}=v2.0.1", core.namespace, core.object())
	for _, p := range providers {
		waitForCondition(t, c, p.kind, p.namespace, p.name, "Ready", "False Paused: ")
	}
	for i, p := range providers[1:] {
		if i == 2 {
			break // The last one, the infrastructure provider, has the old contract for now.
		}
		o.patch(p, `{"version": "v2.0.1"}`)
		o.wait("jsonpath={.status.installedVersion}=v2.0.1", p.namespace, p.object())
	}
	if got := o.counts(providers); got != "0 of 1, 0 of 1, 0 of 1, 0 of 2" {
		t.Errorf("paused Deployments have %s replicas", got)
	}

	// One provider has the old contract: neither it nor the others are resumed.
	o.patch(core, `{"paused": false}`)
	refused(core, "InfrastructureProvider capim-system/in-memory implements v1beta1", "and resume them")
	waitForCondition(t, c, core.kind, core.namespace, core.name, "Ready", "False Paused: Waiting for Deployment capi-controller-manager to be resumed")
	o.patch(infrastructure, `{"paused": false}`)
	refused(infrastructure, "version v2.0.0 implements contract v1beta1, but CoreProvider capi-system/cluster-api works with providers for v1beta3")
	if got := o.counts(providers); got != "0 of 1, 0 of 1, 0 of 1, 0 of 2" {
		t.Errorf("Deployments that must not be resumed have %s replicas", got)
	}

	// All are paused again for the last one, and then resumed.
	o.patch(core, `{"paused": true}`)
	o.patch(infrastructure, `{"paused": true, "version": "v2.0.1"}`)
	o.wait("jsonpath={.status.installedVersion}=v2.0.1", infrastructure.namespace, infrastructure.object())
	for _, p := range providers {
		o.patch(p, `{"paused": false}`)
	}
	for _, p := range providers {
		o.installed(p, "v2.0.1")
		o.wait("jsonpath={.status.contract}=v1beta3", p.namespace, p.object())
	}
	if got := o.counts(providers); got != "1 of , 1 of , 1 of , 2 of " {
		t.Errorf("resumed Deployments have %s replicas", got)
	}
	for _, d := range w.deployments() {
		if image := d.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":v2.0.1") {
			t.Errorf("Deployment %s has image %s", d.Name, image)
		}
	}
	cluster.Eventually("the Cluster keeps its Machines", Ready, SameMachines((*Snapshot).ControlPlane, before), SameMachines((*Snapshot).Workers, before), cluster.WorkloadMatches)
	cluster.Gone()
}
