package journey

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/provider/testenv"
)

// operated is a management cluster whose providers are objects.
type operated struct {
	*Standalone
	t *testing.T
}

// kubectl returns the output of kubectl with input.
func (o *operated) kubectl(input string, args ...string) string {
	o.t.Helper()
	r := o.tools.Kubectl(o.t.Context(), input, append([]string{"--kubeconfig", o.kubeconfig()}, args...)...)
	if r.Failed {
		o.t.Fatal(r)
	}
	return r.Out
}

// wait waits for a condition of an object, or a value as jsonpath={.spec.x}=y.
func (o *operated) wait(condition, namespace, object string) {
	o.t.Helper()
	o.kubectl("", "wait", "--for", condition, "-n", namespace, object, "--timeout", "120s")
}

// install installs the operator from the manifests of the release.
func (o *operated) install() {
	o.t.Helper()
	o.kubectl("", "apply", "-f", o.release("cluster-api", operatorFile))
	o.wait("condition=Available", "capi-operator-system", "deployment/capi-operator-controller-manager")
}

// release returns the path of a file in the local repository.
func (o *operated) release(label, file string) string {
	o.t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(o.tools.config), label, "v*", file))
	if err != nil || len(found) != 1 {
		o.t.Fatalf("%s of %s: %v, %v", file, label, found, err)
	}
	return found[0]
}

// providers returns objects for all providers that Clusters with in-memory infrastructure require: one from ConfigMaps, the others from
// the local repository.
func (o *operated) providers() string {
	o.t.Helper()
	repository := filepath.Dir(o.tools.config)
	text := fmt.Sprintf(`
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: CoreProvider
metadata: {name: cluster-api, namespace: capi-system}
spec:
  manager: {featureGates: {ClusterTopology: true}}
  fetchConfig: {url: %[1]s/cluster-api/latest/core-components.yaml}
---
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: BootstrapProvider
metadata: {name: kubeadm, namespace: capi-kubeadm-bootstrap-system}
spec:
  fetchConfig: {selector: {matchLabels: {provider-components: kubeadm}}}
---
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: ControlPlaneProvider
metadata: {name: kubeadm, namespace: capi-kubeadm-control-plane-system}
spec:
  secretName: variables
  fetchConfig: {url: %[1]s/control-plane-kubeadm/latest/control-plane-components.yaml}
---
apiVersion: v1
kind: Secret
metadata: {name: variables, namespace: capi-kubeadm-control-plane-system}
stringData: {CLUSTER_TOPOLOGY: "true"}
---
apiVersion: operator.cluster.x-k8s.io/v1alpha1
kind: InfrastructureProvider
metadata: {name: in-memory, namespace: capim-system}
spec:
  manager: {featureGates: {ClusterTopology: true}}
  fetchConfig: {url: %[1]s/infrastructure-in-memory/latest/infrastructure-components-in-memory-development.yaml}
`, repository)
	for _, namespace := range []string{"capi-system", "capi-kubeadm-bootstrap-system", "capi-kubeadm-control-plane-system", "capim-system"} {
		text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n---\n" + text
	}
	return text
}

// configMaps creates a ConfigMap with a release.
func (o *operated) configMaps(namespace, label, file string) {
	o.t.Helper()
	components := o.release(label, file)
	version := filepath.Base(filepath.Dir(components))
	o.kubectl("", "create", "configmap", version, "-n", namespace,
		"--from-file=components="+components, "--from-file=metadata="+filepath.Join(filepath.Dir(components), "metadata.yaml"))
	o.kubectl("", "label", "configmap", version, "-n", namespace, "provider-components=kubeadm")
}

const (
	corePlace, bootstrapPlace, planePlace, infrastructurePlace = "capi-system", "capi-kubeadm-bootstrap-system",
		"capi-kubeadm-control-plane-system", "capim-system"
	infrastructureObject = "infrastructureprovider/in-memory"
)

// TestOperator installs all providers from one file of manifests, changes, pauses and deletes some of them, and corrects drift, while a
// Cluster exists.
func TestOperator(t *testing.T) {
	t.Parallel()
	o := &operated{NewStandalone(t, shared.Management(t).Tools), t}
	o.install()
	file := filepath.Join(t.TempDir(), "providers.yaml")
	testenv.Must(t, os.WriteFile(file, []byte(o.providers()), 0o600))
	o.kubectl("", "apply", "-f", file)
	o.configMaps(bootstrapPlace, "bootstrap-kubeadm", "bootstrap-components.yaml")
	for namespace, object := range map[string]string{
		corePlace: "coreprovider/cluster-api", bootstrapPlace: "bootstrapprovider/kubeadm", planePlace: "controlplaneprovider/kubeadm",
		infrastructurePlace: infrastructureObject,
	} {
		o.wait("condition=Ready", namespace, object)
	}
	w := o.Management().World(t)
	c := w.Subject(NewCluster("c", w.Class(w.Tools.ProjectTemplate())).Variable("startupDuration", "100ms").Workers(1).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
	before := c.Snapshot()

	o.kubectl("", "patch", infrastructureObject, "-n", infrastructurePlace, "--type", "merge", "-p", `{"spec": {"manager": {"verbosity": 4}}}`)
	o.eventually("the argument of the manager changes", func() string {
		return o.kubectl("", "get", "deployment", "-n", infrastructurePlace, "-o", "jsonpath={.items[0].spec.template.spec.containers[0].args}")
	}, `"--v=4"`)
	o.wait("condition=Ready", infrastructurePlace, infrastructureObject)

	o.kubectl("", "scale", "deployment", "--all", "--replicas", "3", "-n", planePlace)
	o.eventually("drift is corrected", func() string { return o.kubectl("", "get", "events", "-n", planePlace) }, "DriftCorrected")
	o.wait("jsonpath={.spec.replicas}=1", planePlace, "deployment/capi-kubeadm-control-plane-controller-manager")

	o.kubectl("", "patch", infrastructureObject, "-n", infrastructurePlace, "--type", "merge", "-p", `{"spec": {"paused": true}}`)
	o.wait("jsonpath={.spec.replicas}=0", infrastructurePlace, "deployment/capim-controller-manager")
	o.kubectl("", "patch", infrastructureObject, "-n", infrastructurePlace, "--type", "merge", "-p", `{"spec": {"paused": false}}`)
	o.wait("jsonpath={.spec.replicas}=1", infrastructurePlace, "deployment/capim-controller-manager")
	o.wait("condition=Ready", infrastructurePlace, infrastructureObject)

	o.kubectl("", "delete", infrastructureObject, "-n", infrastructurePlace, "--wait=false")
	o.eventually("the deletion waits for the Cluster", func() string {
		return o.kubectl("", "get", infrastructureObject, "-n", infrastructurePlace, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
	}, "to be deleted, which needs this provider")
	c.Eventually("the Cluster still works", Ready, SameMachines((*Snapshot).ControlPlane, before), SameMachines((*Snapshot).Workers, before), c.WorkloadMatches)
	c.Gone()
	o.wait("delete", infrastructurePlace, infrastructureObject)
	if left := o.kubectl("", "get", "deployments", "-n", infrastructurePlace, "-o", "name"); left != "" {
		t.Errorf("left: %s", left)
	}
	if crds := o.kubectl("", "get", "crds", "-o", "name"); !strings.Contains(crds, "inmemoryclusters.infrastructure.cluster.x-k8s.io") {
		t.Errorf("definitions do not survive: %s", crds)
	}
}

// eventually waits until an output contains words.
func (o *operated) eventually(why string, output func() string, words string) {
	o.t.Helper()
	testenv.Eventually(o.t, why, func() error {
		if text := output(); !strings.Contains(text, words) {
			return fmt.Errorf("%q is not in %s", words, text)
		}
		return nil
	})
}
