package journey

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// declaredMistake is a wrong value in a provider object: it is refused, or a condition says what is wrong, where, and what to do.
type declaredMistake struct {
	reason string
	// kind and name are those of the object. Empty: an InfrastructureProvider with a name of its own.
	kind, name string
	// spec is what is wrong. Without a fetchConfig, it gets the ConfigMap of the row.
	spec string
	// release changes the ConfigMap of the row.
	release func(m map[string]any)
	// condition has the message; empty: the API server refuses the object.
	condition, because string
	words              []string
}

const (
	preflighted, written = "PreflightCheckPassed", "ProviderInstalled"
	// secretValue must appear in no message, event or log.
	secretValue = "s3cr3t-of-mistakes"
)

// components sets the components of the row's ConfigMap, to which a document is added.
func components(document string) func(map[string]any) {
	return func(m map[string]any) {
		all, _ := m["data"].(map[string]any)
		all["components"] = fmt.Sprint(all["components"], "---\n", document)
	}
}

// rejectedMistakes are those that the API server rejects: by the schema, or by webhooks.
func rejectedMistakes() []declaredMistake {
	container := func(fields string) string { return "deployment: {containers: [{name: manager, " + fields + "}]}" }
	return []declaredMistake{
		{reason: "an unknown field", spec: "verzion: v1.0.0", words: []string{`unknown field "spec.verzion"`}},
		{reason: "a version without v", spec: "version: 1.0.0", words: []string{"spec.version", "1.0.0", "prefix v, such as v1.7.4"}},
		{reason: "a version that is none", spec: "version: latest", words: []string{"spec.version", "latest", "semantic version"}},
		{reason: "two sources", spec: "fetchConfig: {url: /a/latest/b.yaml, selector: {}}", words: []string{"spec.fetchConfig", "one and only one of {oci, url, selector}"}},
		{reason: "no source in fetchConfig", spec: "fetchConfig: {}", words: []string{"spec.fetchConfig", "one and only one of {oci, url, selector}"}},
		{reason: "an invalid selector", spec: "fetchConfig: {selector: {matchExpressions: [{key: a, operator: Like}]}}", words: []string{"spec.fetchConfig.selector", "Like"}},
		{reason: "two Secrets", spec: "secretName: a\nconfigSecret: {name: b}", words: []string{"spec", "Cannot set both 'secretName' and 'configSecret'"}},
		{reason: "a duration that is none", spec: "manager: {syncPeriod: soon}", words: []string{"spec.manager.syncPeriod", "soon", "such as 11m, or a number of seconds"}},
		{reason: "an argument that is a list", spec: container("args: {a: [b]}"), words: []string{"spec.deployment.containers[0].args.a", "integer,string"}},
		{reason: "two addresses of metrics", spec: `manager: {metricsAddress: ":1", metrics: {bindAddress: ":2"}}`, words: []string{"spec.manager", "Cannot set both 'metricsAddress' and 'metrics.bindAddress'"}},
		{reason: "a feature gate that is no boolean", spec: "manager: {featureGates: {A: \"yes\"}}", words: []string{"spec.manager.featureGates", "bool"}},
		{reason: "no reconciles", spec: "manager: {maxConcurrentReconciles: -1}", words: []string{"spec.manager.maxConcurrentReconciles", "greater than or equal to 1"}},
		{reason: "negative replicas", spec: "deployment: {replicas: -1}", words: []string{"spec.deployment.replicas", "greater than or equal to 0"}},
		{reason: "a container twice", spec: "deployment: {containers: [{name: manager}, {name: manager}]}", words: []string{"spec.deployment.containers[1].name", "Duplicate", "manager"}},
		{reason: "two images", spec: container("imageUrl: a/b:c, image: {tag: d}"), words: []string{"spec.deployment.containers[0]", "Cannot set both 'image' and 'imageUrl'"}},
		{reason: "both kinds of patches", spec: "manifestPatches: []\npatches: []", words: []string{"spec", "Cannot set both 'patches' and 'manifestPatches'"}},
	}
}

// declaredMistakes are some of those that conditions report. Package controller of the operator tests all.
func declaredMistakes() []declaredMistake {
	const fetch, refused = "ComponentsFetchError", "ComponentsRefused"
	return []declaredMistake{
		{reason: "an unknown provider", name: "nobody", spec: "fetchConfig: null", condition: preflighted, because: "UnknownProvider",
			words: []string{"InfrastructureProvider nobody is not built in", "set spec.fetchConfig, or correct metadata.name"}},
		{reason: "a variable without a value", spec: "secretName: variables", release: components("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: \"${SECRET_VALUE}\", b: \"${MISSING_VALUE}\"}}\n"),
			condition: written, because: fetch, words: []string{"spec.secretName", "need values of the variables MISSING_VALUE", "Secret mistakes/variables does not have them"}},
		{reason: "a release with all permissions", release: components(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`),
			condition: written, because: refused, words: []string{"ClusterRole r grants all permissions (rule 1)", `set the annotation operator.cluster.x-k8s.io/allow-all-permissions: "true"`}},
	}
}

// manifests returns the object of a row, and its ConfigMap, as one JSON document each.
func (m declaredMistake) manifests(t *testing.T, i int) (object, name string) {
	t.Helper()
	name, kind := cmp.Or(m.name, fmt.Sprint("wrong-", i)), cmp.Or(m.kind, "InfrastructureProvider")
	release := decoded(t, simpleConfigMap("mistakes", name, "v1.0.0"))
	metadata, _ := release["metadata"].(map[string]any)
	metadata["name"], metadata["labels"] = fmt.Sprint("row-", i), map[string]any{"row": fmt.Sprint("r", i), "provider.cluster.x-k8s.io/version": "v1.0.0"}
	if m.release != nil {
		m.release(release)
	}
	spec := decoded(t, m.spec)
	if _, has := spec["version"]; !has {
		spec["version"] = "v1.0.0"
	}
	if source, has := spec["fetchConfig"]; has && source == nil {
		delete(spec, "fetchConfig")
	} else if !has {
		spec["fetchConfig"] = map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"row": fmt.Sprint("r", i)}}}
	}
	provider := map[string]any{
		"apiVersion": "operator.cluster.x-k8s.io/v1alpha2", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "mistakes"}, "spec": spec,
	}
	return encodedJSON(t, release) + "\n---\n" + encodedJSON(t, provider), name
}

// rejectsMistakes checks that the API server rejects mistakes, and changes while debug is true.
func (o *operatorCluster) rejectsMistakes() {
	o.t.Helper()
	o.kubectl("{apiVersion: v1, kind: Namespace, metadata: {name: mistakes}}", "apply", "-f", "-")
	apply := func(manifests string, args ...string) Result {
		return o.tools.Kubectl(o.t.Context(), manifests, append([]string{"--kubeconfig", o.kubeconfig(), "apply", "-f", "-"}, args...)...)
	}
	for i, m := range rejectedMistakes() {
		manifests, _ := m.manifests(o.t, i)
		o.t.Run(m.reason, func(t *testing.T) { rejected(t, apply(manifests, "--dry-run=server"), m.words...) })
	}
	o.t.Run("a change while debug is true", func(t *testing.T) {
		debugged := declaredProvider{kind: "InfrastructureProvider", name: "debugged", namespace: "mistakes"}
		manifests, _ := declaredMistake{name: debugged.name, spec: "manager: {debug: true}\nfetchConfig: null"}.manifests(t, 0)
		if r := apply(manifests); r.Failed {
			t.Fatal(r)
		}
		rejected(t, o.tools.Kubectl(t.Context(), "", "--kubeconfig", o.kubeconfig(), "patch", debugged.object(), "-n", debugged.namespace, "--type", "merge",
			"-p", `{"spec": {"manager": {"syncPeriod": "1h"}}}`), "spec.manager", "while debug is true", "set it to false first")
		o.kubectl("", "delete", debugged.object(), "-n", debugged.namespace)
	})
}

// theMistakes declares what is wrong, and reads what the operator says about it.
func testMistakes(o *operatorCluster, c client.Client) {
	infrastructure := declaredProviders()[3]
	o.kubectl("", "create", "namespace", infrastructure.namespace)
	o.declare(infrastructure, "v2.0.0")
	o.installed(infrastructure, "v2.0.0")
	o.kubectl(`
{apiVersion: v1, kind: Namespace, metadata: {name: mistakes}}
---
{apiVersion: v1, kind: Secret, metadata: {name: variables, namespace: mistakes}, stringData: {SECRET_VALUE: `+secretValue+`}}
`, "apply", "-f", "-")
	version := filepath.Base(filepath.Dir(o.release("ipam-in-cluster", "ipam-components.yaml")))
	o.clusterctl("init", "--ipam", "in-cluster:"+version)
	before := o.components()
	for i, m := range declaredMistakes() {
		manifests, name := m.manifests(o.t, i)
		o.kubectl(manifests, "apply", "-f", "-")
		o.t.Run(m.reason, func(t *testing.T) {
			waitForCondition(t, c, infrastructure.kind, "mistakes", name, m.condition, append([]string{"False " + m.because + ": "}, m.words...)...)
		})
	}
	o.t.Run("an older minor version", func(t *testing.T) {
		o.patch(infrastructure, `{"version": "v1.9.0"}`)
		waitForCondition(t, c, infrastructure.kind, infrastructure.namespace, infrastructure.name, preflighted, "False UnsupportedProviderDowngradeReason: ", "spec.version v1.9.0", "the installed v2.0.0")
		o.patch(infrastructure, `{"version": "v2.0.0"}`)
		waitForCondition(t, c, infrastructure.kind, infrastructure.namespace, infrastructure.name, preflighted, "True")
	})
	o.t.Run("another namespace than that of clusterctl", func(t *testing.T) {
		p := declaredProvider{"IPAMProvider", "in-cluster", "mistakes", "ipam-in-cluster", "ipam-components.yaml"}
		o.declare(p, version)
		waitForCondition(t, c, p.kind, p.namespace, p.name, written, "False InstallFailed: ", "ipam-in-cluster is installed in namespace capi-ipam-in-cluster-system", "create this object in that namespace, or delete the provider first")
	})
	if diff := gocmp.Diff(before, o.components()); diff != "" {
		o.t.Errorf("mistakes changed the cluster (-before +after):\n%s", diff)
	}
	o.secret(secretValue)
	o.kubectl("", "delete", "namespace", "mistakes", "--timeout", "60s")
}

// components returns the names of all objects that installed providers consist of.
func (o *operatorCluster) components() []string {
	o.t.Helper()
	var all []string
	for _, kinds := range []string{"deployments,services,serviceaccounts", "customresourcedefinitions,clusterroles,clusterrolebindings", "validatingwebhookconfigurations,mutatingwebhookconfigurations",
		"providers.clusterctl.cluster.x-k8s.io"} {
		for _, name := range o.names(kinds, "") {
			if name != "ServiceAccount mistakes/default" {
				all = append(all, name)
			}
		}
	}
	return all
}

// secret checks that a value is in no object that users read, and in no log.
func (o *operatorCluster) secret(value string) {
	o.t.Helper()
	texts := map[string]string{
		"events":    o.kubectl("", "get", "events", "-A", "-o", "yaml"),
		"providers": o.kubectl("", "get", "coreproviders,infrastructureproviders", "-A", "-o", "yaml"),
	}
	log, err := os.ReadFile(filepath.Join(o.directory, "data", "capi.log"))
	if err != nil {
		o.t.Fatal(err)
	}
	texts["log"] = string(log)
	for where, text := range texts {
		if text == "" || strings.Contains(text, value) {
			o.t.Errorf("the value of a Secret is in the %s of %d bytes, or it is empty", where, len(text))
		}
	}
}

// decoded returns a YAML object.
func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// encodedJSON returns an object as JSON.
func encodedJSON(t *testing.T, object map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
