package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
)

// TestInstallRejects tries releases and specs of which nothing must be written.
func TestInstallRejects(t *testing.T) {
	const fetch, custom, refused = "ComponentsFetchError", "ComponentsCustomizationError", "ComponentsRefused"
	container := func(fields string) string { return "deployment: {containers: [{name: manager, " + fields + "}]}" }
	const (
		missing  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {b: \"${MISSING_VALUE}\"}}\n"
		secret   = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: \"${SECRET_VALUE}\", b: \"${MISSING_VALUE}\"}}\n"
		superior = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`
		others   = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: capim-manager-role}, rules: []}"
		provider = "{apiVersion: operator.cluster.x-k8s.io/v1alpha2, kind: CoreProvider, metadata: {name: c}, spec: {}}"
	)
	tryMistakes(t, operatorv1.ProviderInstalledCondition, []mistake{
		{reason: "components that are no YAML", release: data("components", ptr.To("a: [")), because: fetch,
			words: []string{"cannot process the components of infrastructure-", "document 1: invalid YAML"}},
		{reason: "components without objects", release: data("components", ptr.To("# nothing")), because: fetch, words: []string{"have no objects"}},
		{reason: "a variable without a value", spec: "secretName: variables", release: adds(secret), because: fetch,
			words: []string{"spec.secretName", "need values of the variables MISSING_VALUE", "Secret mistakes/variables does not have them"}},
		{reason: "a variable, and no Secret", release: adds(missing), because: fetch,
			words: []string{"need values of the variables MISSING_VALUE", "create a Secret with them in namespace mistakes, and set spec.secretName"}},
		{reason: "missing manifests", spec: "additionalManifests: {name: none}", because: fetch,
			words: []string{"spec.additionalManifests: ConfigMap mistakes/none does not exist", "create it"}},
		{reason: "manifests without the key", spec: "additionalManifests: {name: empty}", because: fetch,
			words: []string{"spec.additionalManifests: ConfigMap mistakes/empty has no key manifests", "add it"}},

		// The release contains what no provider needs.
		{reason: "a release with all permissions", release: adds(superior), because: refused,
			words: []string{"ClusterRole r grants all permissions (rule 1)", `set the annotation operator.cluster.x-k8s.io/allow-all-permissions: "true"`}},
		{reason: "a release that replaces what another provider has", release: adds(others), because: refused,
			words: []string{"ClusterRole capim-manager-role belongs to provider infrastructure-in-memory"}},
		{reason: "a release that declares providers", release: adds(provider), because: refused,
			words: []string{"CoreProvider mistakes/c declares a provider: only administrators may"}},

		// The release does not have what the spec changes.
		{reason: "an unknown container", spec: "deployment: {containers: [{name: proxy}]}", because: custom,
			words: []string{"spec.deployment.containers[proxy]", "has no such container: it has manager"}},
		{reason: "an unknown Deployment", spec: "additionalDeployments: {other: {deployment: {replicas: 1}}}", because: custom,
			words: []string{"spec.additionalDeployments[other]", "no such Deployment: it has ca-"}},
		{reason: "an argument that exists", spec: "manager: {additionalArgs: {leader-elect: \"false\"}}", because: custom,
			words: []string{"spec.manager.additionalArgs[leader-elect]", "has this argument already: use deployment.containers[].args"}},
		{reason: "an invalid image", spec: container("image: {name: \"A b\"}"), because: custom,
			words: []string{"spec.deployment.containers[manager].image", "A b", "invalid"}},
		{reason: "a merge patch that is no YAML", spec: `manifestPatches: ["a: ["]`, because: custom, words: []string{"spec.manifestPatches[0]: the patch must be YAML"}},
		{reason: "a merge patch without a kind", spec: `manifestPatches: ["a: b"]`, because: custom,
			words: []string{"spec.manifestPatches[0]: the patch must have the kind of its object"}},
		{reason: "a patch for nothing", spec: `patches: [{target: {kind: Service}, patch: "{a: b}"}]`, because: custom,
			words: []string{"spec.patches[0]", "applies to none", "check kind, name, namespace and target"}},
		{reason: "a JSON patch without a target", spec: `patches: [{patch: "[{op: remove, path: /a}]"}]`, because: custom,
			words: []string{"spec.patches[0]: a JSON patch must have a target"}},
		{reason: "a JSON patch of a field that does not exist", spec: `patches: [{target: {kind: Deployment}, patch: "[{op: remove, path: /none}]"}]`, because: custom,
			words: []string{"spec.patches[0]: Deployment ca-", "/none"}},
	})
}

// TestInstallInAnotherNamespace: what clusterctl installed elsewhere is not installed twice.
func TestInstallInAnotherNamespace(t *testing.T) {
	w := newWorld(t, simpleConfigMap("x-system", "x", "v1.0.0"), &clusterctlv1.Provider{
		ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "infrastructure-x"}, ProviderName: "x", Type: "InfrastructureProvider", Version: "v1.0.0",
	})
	w.create(simpleProvider)
	p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
	w.reports(p, operatorv1.ProviderInstalledCondition, "False InstallFailed: ", "infrastructure-x is installed in namespace elsewhere",
		"create this object in that namespace, or delete the provider first")
}

// TestInstallAgain: a provider that is installed, and has not changed, costs no request; a change of the spec that is rejected leaves what
// is installed as it is.
func TestInstallAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simpleConfigMap("x-system", "x", "v1.0.0"))
	w.create(simpleProvider)
	p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
	p = w.reconcile(p)
	w.Clock.Step(maxSettling)
	p = w.reconcile(p) // What the installation wrote is compared once.
	w.Writes, w.LiveReads = nil, nil
	p = w.reconcile(p)
	if len(w.Writes) > 0 || len(w.LiveReads) > 0 {
		t.Errorf("requests without a change: %v, %v", w.Writes, w.LiveReads)
	}
	before := encoded(t, w.deployment("x-system", "x").Spec)
	w.change(p, `{manager: {verbosity: 3}, manifestPatches: ["a: ["]}`)
	p = w.reconcile(p)
	w.reports(p, operatorv1.ProviderInstalledCondition, "False ComponentsCustomizationError: ")
	w.reports(p, operatorv1.ReadyCondition, "True")
	if after := encoded(t, w.deployment("x-system", "x").Spec); after != before {
		t.Errorf("the Deployment was %s, is %s", before, after)
	}
	w.change(p, `{manifestPatches: null}`)
	p = w.reconcile(p)
	w.reports(p, operatorv1.ProviderInstalledCondition, "True")
}
