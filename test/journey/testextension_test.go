package journey

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestTestExtension installs the test extension like any provider, and sets its answers: variables, patches, and hooks that block until
// they are released.
func TestTestExtension(t *testing.T) {
	t.Parallel()
	w := newExtensionWorld(t)
	if r := w.Tools.Clusterctl(t.Context(), "", "init", "--kubeconfig", w.Kubeconfig, "--runtime-extension", "test", "--wait-providers"); r.Failed {
		t.Fatal(r)
	}
	config := w.extensionConfig("try", map[string]any{"service": map[string]any{"namespace": "test-extension-system", "name": "test-extension-webhook-service"}})
	config.SetAnnotations(map[string]string{"runtime.cluster.x-k8s.io/inject-ca-from-secret": "test-extension-system/test-extension-webhook-service-cert"})
	testenv.Must(t, w.Client.Create(t.Context(), config))
	w.discovered("try", "True after-cluster-upgrade.try after-control-plane-initialized.try after-control-plane-upgrade.try after-workers-upgrade.try "+
		"before-cluster-create.try before-cluster-delete.try before-cluster-upgrade.try before-control-plane-upgrade.try before-workers-upgrade.try "+
		"can-update-machine-set.try can-update-machine.try discover-variables.try generate-patches.try generate-upgrade-plan.try update-machine.try "+
		"validate-topology.try")

	answers := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "c-test-extension"}, Data: map[string]string{
		"DiscoverVariables":   `{variables: [{name: greeting, schema: {openAPIV3Schema: {type: string, default: hello}}}]}`,
		"BeforeClusterCreate": `{message: the budget is not approved, retryAfterSeconds: 1}`,
		"GeneratePatches": `
patches:
- kind: KubeadmControlPlaneTemplate
  jsonPatches: [{op: add, path: /spec/template/spec/kubeadmConfigSpec/preKubeadmCommands, value: [echo hello]}]
- kind: KubeadmConfigTemplate
  jsonPatches: [{op: add, path: /spec/template/spec/preKubeadmCommands, value: [echo hello]}]
`,
	}}
	testenv.Must(t, w.Client.Create(t.Context(), answers))
	name := w.Class(w.Tools.ProjectTemplate())
	class := &clusterv1.ClusterClass{}
	testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, class))
	before := class.DeepCopy()
	class.Spec.Patches = append(class.Spec.Patches, clusterv1.ClusterClassPatch{Name: "try", External: &clusterv1.ExternalPatchDefinition{
		GenerateExtension: ptr.To("generate-patches.try"), DiscoverVariablesExtension: ptr.To("discover-variables.try"),
		Settings: map[string]string{"answers": w.Namespace + "/c-test-extension"},
	}})
	testenv.Must(t, w.Client.Patch(t.Context(), class, client.MergeFrom(before)))

	c := w.Subject(NewCluster("c", name).Version("v1.29.2").Variable("startupDuration", "100ms").Workers(1).Build())
	c.Eventually("the creation is blocked", blockedBy(`hook "BeforeClusterCreate" is blocking: the budget is not approved (extension before-cluster-create.try)`))
	c.answer("BeforeClusterCreate", "")
	c.Eventually("the Cluster is created, with the patches", Ready, ControlPlanes(1), Workers(1), c.greets("hello"), reconciled(""))
	if calls := c.answers().Data["BeforeClusterCreate.calls"]; !strings.Contains(calls, "status: Success") {
		t.Errorf("the calls of BeforeClusterCreate are recorded as %q", calls)
	}
	c.answer("BeforeClusterUpgrade", "{status: Failure, message: tickets are required}")
	c.Change(SetVersion("v1.30.5"))
	c.Eventually("the upgrade fails", notReconciled("before-cluster-upgrade.try"))
	c.answer("BeforeWorkersUpgrade", "{message: backups first, retryAfterSeconds: 1}")
	c.answer("BeforeClusterUpgrade", "")
	c.Eventually("workers are held", blockedBy(`hook "BeforeWorkersUpgrade" is blocking: backups first (extension before-workers-upgrade.try)`))
	c.answer("BeforeWorkersUpgrade", "")
	c.Eventually("the Cluster is upgraded", Ready, Version("v1.30.5"), ControlPlanes(1), Workers(1), reconciled(""))
}

// answers returns the ConfigMap with the answers for the Cluster.
func (c *Subject) answers() *corev1.ConfigMap {
	c.t.Helper()
	o := &corev1.ConfigMap{}
	testenv.Must(c.t, c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: c.Name + "-test-extension"}, o))
	return o
}

// answer sets the answer of a hook.
func (c *Subject) answer(hook, text string) {
	c.t.Helper()
	before := c.answers()
	after := before.DeepCopy()
	after.Data[hook] = text
	testenv.Must(c.t, c.Client.Patch(c.t.Context(), after, client.MergeFrom(before)))
}
