package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/packages/replace/journal"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// operator returns the operator as it is installed.
func operator() deployed {
	return deployed{"cluster-api-operator", "capi-operator-system", "capi-operator-", "controller-leader-election-capi-operator"}
}

// operated returns the operator and the managers of the providers that it installs.
func operated() []deployed {
	return append(deployments(), capim(), operator())
}

// simulated is a cluster of the in-memory provider.
const simulated = "simulated"

// TestOperator applies the operator's manifests in a cluster of 1+1, with two replicas and restricted Pods, and installs all providers with
// it: from objects of `clusterctl operator init`, and from a file. They create a simulated cluster, and manage their own one (pivot). There,
// the leader of the operator is deleted, and killed, while it changes a provider, and the certificates of all webhooks are rotated. Webhooks
// respond all the time, and each provider is installed, and rolled out, once. In the end, a provider is deleted.
func TestOperator(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	m := newManagement(t, w, "operated", operated())
	stage(t, "two restricted replicas of the operator", m.operator)
	stage(t, "clusterctl operator init", func() {
		m.clusterctl("operator", "init", "--infrastructure", "docker", "--wait-provider-timeout", "180")
	})
	stage(t, "the in-memory provider from a file", m.inMemory)
	for name, n := range m.rollouts() {
		if n != "generation 1, revision 1" {
			t.Errorf("Deployment %s was installed more than once: %s", name, n)
		}
	}
	m.clusterctl("create", "cluster", simulated, "--infrastructure", "in-memory", "--flavor", "in-memory-development", "--kubernetes-version", newer,
		"--control-plane-machine-count", "1", "--worker-machine-count", "1")

	m.pivot(w, func() {
		webhooks := m.probe()
		stage(t, "changed the provider of its own machines, while the leader of the operator is deleted", func() {
			m.change("infrastructureprovider/docker", "capd-system", "capd-controller-manager", func(leader string) {
				m.kubectl("delete", "pod", leader, "--namespace", operator().namespace, "--wait=false")
			})
		})
		stage(t, "changed the core provider, while the leader of the operator is killed", func() {
			m.change("coreprovider/cluster-api", "capi-system", "capi-controller-manager", func(leader string) { m.kill(operator(), leader) })
		})
		stage(t, "rotated the webhook certificates", m.rotate)
		webhooks.end(10 * time.Second)
		stage(t, "a simulated cluster", func() { m.kubectl("wait", "--for", "condition=Available", "cluster/"+simulated, "--timeout", "120s") })
		stage(t, "deleted a provider", m.removed)
		m.memory()
	})
	stage(t, "scaled from 2 to 1 workers", func() {
		m.subject.Change(journey.SetWorkers(1))
		m.subject.Eventually("the Cluster is scaled down", journey.Ready, journey.ControlPlanes(1), journey.Workers(1), m.subject.WorkloadMatches)
	})
	gone(t, m.subject)
}

// operator installs the operator as `kubectl apply` does, in a namespace that admits only restricted Pods, and scales it to 2.
func (m *management) operator() {
	m.t.Helper()
	d := operator()
	m.kubectl("create", "namespace", d.namespace)
	m.kubectl("label", "namespace", d.namespace, "pod-security.kubernetes.io/enforce=restricted")
	m.kubectl("apply", "--filename", filepath.Join(filepath.Dir(m.config), "cluster-api", testVersion, "operator-components.yaml"))
	m.kubectl("--namespace", d.namespace, "scale", "deployment/"+d.prefix+"controller-manager", "--replicas", "2")
	m.kubectl("--namespace", d.namespace, "rollout", "status", "deployment/"+d.prefix+"controller-manager", "--timeout", "180s")
}

// inMemory declares the in-memory provider in a file, and its release in a ConfigMap.
func (m *management) inMemory() {
	m.t.Helper()
	file := filepath.Join(m.t.TempDir(), "provider.yaml")
	if err := os.WriteFile(file, []byte(`
apiVersion: v1
kind: Namespace
metadata:
  name: capim-system
  labels: {pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: v1
kind: Secret
metadata: {name: variables, namespace: capim-system}
stringData: {CAPI_MEMORY_LIMIT: `+memoryLimit+`}
---
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: InfrastructureProvider
metadata: {name: in-memory, namespace: capim-system}
spec:
  version: `+testVersion+`
  secretName: variables
  fetchConfig: {selector: {matchLabels: {provider.cluster.x-k8s.io/name: in-memory}}}
  manager: {featureGates: {ClusterTopology: true}}
`), 0o600); err != nil {
		m.t.Fatal(err)
	}
	m.kubectl("apply", "--filename", file)
	m.clusterctl("operator", "preload", "--infrastructure", "in-memory:capim-system:"+testVersion)
	m.kubectl("wait", "--for", "condition=Ready", "--namespace", "capim-system", "infrastructureprovider/in-memory", "--timeout", "180s")
}

// rollouts returns generation and revision of the Deployments of all providers, by namespace and name, and checks that the inventory has each
// provider once.
func (m *management) rollouts() map[string]string {
	m.t.Helper()
	var list appsv1.DeploymentList
	if err := m.client.List(m.t.Context(), &list, client.HasLabels{clusterv1.ProviderNameLabel}); err != nil {
		m.t.Fatal(err)
	}
	found := map[string]string{}
	for _, d := range list.Items {
		if d.Namespace != operator().namespace {
			found[d.Namespace+"/"+d.Name] = fmt.Sprintf("generation %d, revision %s", d.Generation, d.Annotations["deployment.kubernetes.io/revision"])
		}
	}
	inventory := strings.Fields(m.kubectl("get", "providers.clusterctl.cluster.x-k8s.io", "--all-namespaces", "--output", "jsonpath={.items[*].metadata.name}"))
	slices.Sort(inventory)
	want := []string{"bootstrap-kubeadm", "cluster-api", "control-plane-kubeadm", "infrastructure-docker", "infrastructure-in-memory"}
	if diff := cmp.Diff(want, inventory); diff != "" || len(found) != len(want) {
		m.t.Errorf("providers in the inventory: -want +got:\n%s; Deployments: %v", diff, found)
	}
	return found
}

// change changes a provider, and ends the leader of the operator when it has begun. Another process completes the change.
func (m *management) change(object, namespace, deployment string, end func(leader string)) {
	m.t.Helper()
	before := m.rollouts()
	lease, leader := m.leader(operator())
	m.kubectl("patch", object, "--namespace", namespace, "--type", "merge", "--patch", `{"spec": {"manager": {"verbosity": 4}}}`)
	m.until("the operator has begun", func() bool { return len(m.journals()) > 0 })
	end(leader)
	m.until("the change is completed", func() bool { return len(m.journals()) == 0 })
	generation := m.kubectl("get", object, "--namespace", namespace, "--output", "jsonpath={.metadata.generation}")
	for _, condition := range []string{"jsonpath={.status.observedGeneration}=" + generation, "condition=Ready"} {
		m.kubectl("wait", "--for", condition, "--namespace", namespace, object, "--timeout", "120s")
	}
	if now, _ := m.leader(operator()); *now.Spec.HolderIdentity == *lease.Spec.HolderIdentity {
		m.t.Errorf("%s is still the leader after it was ended", *now.Spec.HolderIdentity)
	}
	m.rolledOut(before, namespace, deployment)
}

// journals returns the Secrets that record changes of providers that have begun.
func (m *management) journals() []corev1.Secret {
	m.t.Helper()
	var list corev1.SecretList
	if err := m.client.List(m.t.Context(), &list, client.MatchingLabels{clusterctlv1.ClusterctlCoreLabel: journal.Label}); err != nil {
		m.t.Fatal(err)
	}
	return list.Items
}

// rolledOut checks that one Deployment, and no other, was rolled out once, with the new argument.
func (m *management) rolledOut(before map[string]string, namespace, name string) {
	m.t.Helper()
	after, changed := m.rollouts(), namespace+"/"+name
	if !strings.HasSuffix(after[changed], ", revision 2") {
		m.t.Errorf("Deployment %s has %s, want revision 2", changed, after[changed])
	}
	delete(before, changed)
	delete(after, changed)
	if diff := cmp.Diff(before, after); diff != "" {
		m.t.Errorf("other Deployments (-before +after the change of %s):\n%s", changed, diff)
	}
	var d appsv1.Deployment
	if err := m.client.Get(m.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &d); err != nil {
		m.t.Fatal(err)
	}
	if c := d.Spec.Template.Spec.Containers[0]; !slices.Contains(c.Args, "--v=4") || c.Resources.Limits.Memory().String() != memoryLimit {
		m.t.Errorf("Deployment %s has arguments %v, limits %v", changed, c.Args, c.Resources.Limits)
	}
}

// removed deletes the simulated cluster and then its provider. The other providers stay.
func (m *management) removed() {
	m.t.Helper()
	m.clusterctl("delete", "cluster", simulated, "--wait")
	m.kubectl("delete", "clusterclasses.cluster.x-k8s.io,inmemoryclustertemplates,inmemorymachinetemplates", "--all", "--namespace", "default")
	m.kubectl("delete", "infrastructureprovider/in-memory", "--namespace", "capim-system", "--timeout", "120s")
	if left := m.kubectl("get", "deployments,services,serviceaccounts", "--namespace", "capim-system", "--output", "name"); strings.Contains(left, "capim") {
		m.t.Errorf("left: %s", left)
	}
	if crds := m.kubectl("get", "crds", "--output", "name"); !strings.Contains(crds, "inmemoryclusters.infrastructure.cluster.x-k8s.io") {
		m.t.Errorf("definitions do not survive: %s", crds)
	}
	for _, d := range deployments() {
		m.kubectl("wait", "--for", "condition=Available", "--namespace", d.namespace, "deployment/"+d.prefix+"controller-manager", "--timeout", "10s")
	}
	m.managers = append(deployments(), operator())
}
