package journey

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// operatorCluster is a management cluster whose providers are declared as objects.
type operatorCluster struct {
	*Standalone
	t *testing.T
}

// kubectl returns the output of kubectl with input.
func (o *operatorCluster) kubectl(input string, args ...string) string {
	o.t.Helper()
	r := o.tools.Kubectl(o.t.Context(), input, append([]string{"--kubeconfig", o.kubeconfig()}, args...)...)
	if r.Failed {
		o.t.Fatal(r)
	}
	return r.Out
}

// wait waits for a condition of an object, or a value as jsonpath={.spec.x}=y.
func (o *operatorCluster) wait(condition, namespace, object string) {
	o.t.Helper()
	o.kubectl("", "wait", "--for", condition, "-n", namespace, object, "--timeout", "120s")
}

// install installs the operator from the manifests of the release.
func (o *operatorCluster) install() {
	o.t.Helper()
	o.kubectl("", "apply", "-f", o.release("cluster-api", operatorFile))
	o.wait("condition=Available", "capi-operator-system", "deployment/capi-operator-controller-manager")
}

// release returns the path of a file in the local repository.
func (o *operatorCluster) release(label, file string) string {
	o.t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(o.tools.config), label, "v*", file))
	if err != nil || len(found) != 1 {
		o.t.Fatalf("%s of %s: %v, %v", file, label, found, err)
	}
	return found[0]
}

// providers returns objects for all providers that Clusters with in-memory infrastructure require: one from ConfigMaps, the others from
// the local repository.
func (o *operatorCluster) providers() string {
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

// configMap returns a ConfigMap with a release.
func (o *operatorCluster) configMap(namespace, label, file string) string {
	o.t.Helper()
	folder := filepath.Dir(o.release(label, file))
	components, err := os.ReadFile(filepath.Join(folder, file))
	testenv.Must(o.t, err)
	metadata, err := os.ReadFile(filepath.Join(folder, "metadata.yaml"))
	testenv.Must(o.t, err)
	m, err := repository.ToConfigMap(packages.Provider{Name: "kubeadm", Type: clusterctlv1.BootstrapProviderType}, filepath.Base(folder), namespace, components, metadata)
	testenv.Must(o.t, err)
	m.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	m.Name, m.Labels = filepath.Base(folder), map[string]string{"provider-components": "kubeadm"}
	text, err := yaml.Marshal(m)
	testenv.Must(o.t, err)
	return string(text)
}

// repository returns a directory with all that a management cluster is to have: the operator, the providers, and a Cluster with its class.
func (o *operatorCluster) repository() string {
	o.t.Helper()
	operator, err := os.ReadFile(o.release("cluster-api", operatorFile))
	testenv.Must(o.t, err)
	generated := o.run("generate", "cluster", "declared", "--infrastructure", "in-memory:v2.0.0", "--target-namespace", "default",
		"--kubernetes-version", "v1.36.3", "--control-plane-machine-count", "1", "--worker-machine-count", "1")
	if generated.Failed {
		o.t.Fatal(generated)
	}
	fast := strings.NewReplacer("    class: in-memory\n", "    class: in-memory\n    variables: [{name: startupDuration, value: 100ms}]\n")
	dir := o.t.TempDir()
	for name, content := range map[string]string{
		"cluster.yaml":   fast.Replace(generated.Out),
		"operator.yaml":  string(operator),
		"providers.yaml": o.providers() + "---\n" + o.configMap(bootstrapPlace, "bootstrap-kubeadm", "bootstrap-components.yaml"),
	} {
		testenv.Must(o.t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

// applied applies a directory as tools for GitOps do: again and again, until all kinds exist, and all objects are accepted.
func (o *operatorCluster) applied(dir string) {
	o.t.Helper()
	testenv.Eventually(o.t, "the directory is applied", func() error {
		if r := o.tools.Kubectl(o.t.Context(), "", "--kubeconfig", o.kubeconfig(), "apply", "-f", dir); r.Failed {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}

const (
	corePlace, bootstrapPlace, planePlace, infrastructurePlace = "capi-system", "capi-kubeadm-bootstrap-system",
		"capi-kubeadm-control-plane-system", "capim-system"
	infrastructureObject = "infrastructureprovider/in-memory"
)

// TestOperator creates a Cluster from an empty management cluster and one directory of manifests. Then it makes mistakes, changes, pauses
// and deletes some of them, and corrects drift, while a Cluster exists.
func TestOperator(t *testing.T) {
	t.Parallel()
	o := &operatorCluster{NewStandalone(t, shared.Management(t).Tools), t}
	o.applied(o.repository())
	for namespace, object := range map[string]string{
		corePlace: "coreprovider/cluster-api", bootstrapPlace: "bootstrapprovider/kubeadm", planePlace: "controlplaneprovider/kubeadm",
		infrastructurePlace: infrastructureObject,
	} {
		o.wait("condition=Ready", namespace, object)
	}
	o.wait("condition=Available", "default", "cluster/declared")
	o.rejectsMistakes()
	o.kubectl("", "delete", "cluster", "declared", "-n", "default", "--timeout", "120s")
	w := o.Management().World(t)
	c := w.Subject(NewCluster("c", w.Class(w.Tools.ProjectTemplate())).Variable("startupDuration", "100ms").Workers(1).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
	before := c.Snapshot()

	o.kubectl("", "patch", infrastructureObject, "-n", infrastructurePlace, "--type", "merge", "-p", `{"spec": {"manager": {"verbosity": 4}}}`)
	o.eventually("the argument of the manager changes", func() string {
		return o.kubectl("", "get", "deployment", "-n", infrastructurePlace, "-o", "jsonpath={.items[0].spec.template.spec.containers[0].args}")
	}, `"--v=4"`)
	o.wait("condition=Ready", infrastructurePlace, infrastructureObject)

	o.kubectl("", "delete", "service", "capi-kubeadm-bootstrap-webhook-service", "-n", bootstrapPlace)
	o.kubectl("", "patch", "clusterrole", "capi-kubeadm-bootstrap-manager-role", "--type", "merge", "-p", `{"rules": []}`)
	o.eventually("the Service and the role are restored", func() string { return o.kubectl("", "get", "events", "-n", bootstrapPlace) }, "Restored ClusterRole capi-kubeadm-bootstrap-manager-role, Service")
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
func (o *operatorCluster) eventually(why string, output func() string, words string) {
	o.t.Helper()
	testenv.Eventually(o.t, why, func() error {
		if text := output(); !strings.Contains(text, words) {
			return fmt.Errorf("%q is not in %s", words, text)
		}
		return nil
	})
}
