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

func data(key string, value any) func(map[string]any) {
	return func(m map[string]any) {
		all, _ := m["data"].(map[string]any)
		if all[key] = value; value == nil {
			delete(all, key)
		}
	}
}

// components sets the components of the row's ConfigMap, to which a document is added.
func components(document string) func(map[string]any) {
	return func(m map[string]any) {
		all, _ := m["data"].(map[string]any)
		all["components"] = fmt.Sprint(all["components"], "---\n", document)
	}
}

func declaredMistakes(layout string) []declaredMistake {
	const fetch, custom, refused = "ComponentsFetchError", "ComponentsCustomizationError", "ComponentsRefused"
	container := func(fields string) string { return "deployment: {containers: [{name: manager, " + fields + "}]}" }
	return []declaredMistake{
		// The API server refuses these.
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

		// The object does not fit the others.
		{reason: "an unknown provider", name: "nobody", spec: "fetchConfig: null", condition: preflighted, because: "UnknownProvider",
			words: []string{"InfrastructureProvider nobody is not built in", "set spec.fetchConfig, or correct metadata.name"}},
		{reason: "a second core provider", kind: "CoreProvider", name: "cluster-api", condition: preflighted, because: "MoreThanOneExists",
			words: []string{"CoreProvider capi-system/cluster-api exists", "delete one of both objects"}},
		{reason: "a core provider with another name", kind: "CoreProvider", name: "capi", condition: preflighted, because: "IncorrectCoreProviderNameReason",
			words: []string{"metadata.name of a CoreProvider must be cluster-api"}},
		{reason: "a provider in a second namespace", name: "in-memory", condition: preflighted, because: "MoreThanOneExists",
			words: []string{"InfrastructureProvider capim-system/in-memory exists", "delete one of both objects"}},

		// The release cannot be read.
		{reason: "a URL without a file", spec: "fetchConfig: {url: https://github.com/owner/name}", condition: written, because: fetch,
			words: []string{"spec.fetchConfig.url", "https://github.com/owner/name", "https://github.com/{owner}/{repository}/releases/{latest|version}/{file}"}},
		{reason: "a URL that is none of a repository", spec: "fetchConfig: {url: \"http://localhost/components.yaml\"}", condition: written, because: fetch,
			words: []string{"spec.fetchConfig.url", "http://localhost/components.yaml", "or an absolute path"}},
		{reason: "a URL that does not respond", spec: "fetchConfig: {url: \"https://" + noHost + "/api/v4/projects/p/packages/generic/p/v1.0.0/components.yaml\"}", condition: written, because: fetch,
			words: []string{"https://" + noHost + "/api/v4/projects/p/packages/generic/p/v1.0.0/metadata.yaml", noNetwork}},
		{reason: "an artifact that does not exist", spec: "fetchConfig: {oci: " + layout + "}", condition: written, because: fetch, words: []string{layout, "no artifact with tag v1.0.0", "add it, or correct spec.version or spec.fetchConfig"}},
		{reason: "no ConfigMap", spec: "fetchConfig: {selector: {matchLabels: {a: none}}}", condition: written, because: fetch,
			words: []string{"ConfigMaps of namespace mistakes with labels a=none", "v1.0.0", "add it, or correct spec.version or spec.fetchConfig"}},
		{reason: "no components", release: data("components", nil), condition: written, because: fetch, words: []string{"has no key components", "add it"}},
		{reason: "no metadata", release: data("metadata", nil), condition: written, because: fetch, words: []string{"has no key metadata", "add it"}},
		{reason: "metadata that is no YAML", release: data("metadata", "a: ["), condition: written, because: fetch, words: []string{"invalid metadata.yaml of infrastructure-"}},
		{reason: "metadata without the series", release: data("metadata", strings.ReplaceAll(simpleMetadata("v1beta1"), "major: 1", "major: 7")), condition: written, because: fetch,
			words: []string{"has no release series 1.0", "store the release in a ConfigMap with corrected metadata"}},
		{reason: "components that are not compressed", release: func(m map[string]any) {
			metadata, _ := m["metadata"].(map[string]any)
			metadata["annotations"] = map[string]any{"provider.cluster.x-k8s.io/compressed": "true"}
		}, condition: written, because: fetch, words: []string{"annotation provider.cluster.x-k8s.io/compressed", "cannot be decompressed"}},
		{reason: "components that are no YAML", release: data("components", "a: ["), condition: written, because: fetch, words: []string{"cannot process the components of infrastructure-", "document 1: invalid YAML"}},
		{reason: "components without objects", release: data("components", "# nothing"), condition: written, because: fetch, words: []string{"have no objects"}},
		{reason: "a missing Secret", spec: "secretName: none", condition: written, because: fetch, words: []string{"spec.secretName: Secret mistakes/none does not exist", "create it"}},
		{reason: "a missing Secret of another namespace", spec: "configSecret: {name: none, namespace: default}", condition: written, because: fetch, words: []string{"spec.configSecret: Secret default/none does not exist"}},
		{reason: "a variable without a value", spec: "secretName: variables", release: components("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: \"${SECRET_VALUE}\", b: \"${MISSING_VALUE}\"}}\n"),
			condition: written, because: fetch, words: []string{"spec.secretName", "need values of the variables MISSING_VALUE", "Secret mistakes/variables does not have them"}},
		{reason: "a variable, and no Secret", release: components("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {b: \"${MISSING_VALUE}\"}}\n"),
			condition: written, because: fetch, words: []string{"need values of the variables MISSING_VALUE", "create a Secret with them in namespace mistakes, and set spec.secretName"}},
		{reason: "missing manifests", spec: "additionalManifests: {name: none}", condition: written, because: fetch, words: []string{"spec.additionalManifests: ConfigMap mistakes/none does not exist", "create it"}},
		{reason: "manifests without the key", spec: "additionalManifests: {name: empty}", condition: written, because: fetch, words: []string{"spec.additionalManifests: ConfigMap mistakes/empty has no key manifests", "add it"}},

		// The release contains what no provider needs.
		{reason: "a release with all permissions", release: components(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`),
			condition: written, because: refused, words: []string{"ClusterRole r grants all permissions (rule 1)", `set the annotation operator.cluster.x-k8s.io/allow-all-permissions: "true"`}},
		{reason: "a release that replaces what another provider has", release: components("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: capim-manager-role}, rules: []}"),
			condition: written, because: refused, words: []string{"ClusterRole capim-manager-role belongs to provider infrastructure-in-memory"}},
		{reason: "a release that declares providers", release: components("{apiVersion: operator.cluster.x-k8s.io/v1alpha2, kind: CoreProvider, metadata: {name: c}, spec: {}}"),
			condition: written, because: refused, words: []string{"CoreProvider mistakes/c declares a provider: only administrators may"}},

		// The release does not have what the spec changes.
		{reason: "an unknown container", spec: "deployment: {containers: [{name: proxy}]}", condition: written, because: custom, words: []string{"spec.deployment.containers[proxy]", "has no such container: it has manager"}},
		{reason: "an unknown Deployment", spec: "additionalDeployments: {other: {deployment: {replicas: 1}}}", condition: written, because: custom, words: []string{"spec.additionalDeployments[other]", "no such Deployment: it has ca-"}},
		{reason: "an argument that is there", spec: "manager: {additionalArgs: {leader-elect: \"false\"}}", condition: written, because: custom, words: []string{"spec.manager.additionalArgs[leader-elect]", "has this argument already: use deployment.containers[].args"}},
		{reason: "an invalid image", spec: container("image: {name: \"A b\"}"), condition: written, because: custom, words: []string{"spec.deployment.containers[manager].image", "A b", "invalid"}},
		{reason: "a merge patch that is no YAML", spec: `manifestPatches: ["a: ["]`, condition: written, because: custom, words: []string{"spec.manifestPatches[0]: the patch must be YAML"}},
		{reason: "a merge patch without a kind", spec: `manifestPatches: ["a: b"]`, condition: written, because: custom, words: []string{"spec.manifestPatches[0]: the patch must have the kind of its object"}},
		{reason: "a patch for nothing", spec: `patches: [{target: {kind: Service}, patch: "{a: b}"}]`, condition: written, because: custom, words: []string{"spec.patches[0]", "applies to none", "check kind, name, namespace and target"}},
		{reason: "a JSON patch without a target", spec: `patches: [{patch: "[{op: remove, path: /a}]"}]`, condition: written, because: custom, words: []string{"spec.patches[0]: a JSON patch must have a target"}},
		{reason: "a JSON patch of a field that is not there", spec: `patches: [{target: {kind: Deployment}, patch: "[{op: remove, path: /none}]"}]`, condition: written, because: custom, words: []string{"spec.patches[0]: Deployment ca-", "/none"}},
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

// theMistakes declares what is wrong, and reads what the operator says about it.
func theMistakes(o *operated, c client.Client) {
	infrastructure := operatedProviders()[3]
	o.kubectl("", "create", "namespace", infrastructure.namespace)
	o.declare(infrastructure, "v2.0.0")
	o.installed(infrastructure, "v2.0.0")
	o.kubectl(`
{apiVersion: v1, kind: Namespace, metadata: {name: mistakes}}
---
{apiVersion: v1, kind: Secret, metadata: {name: variables, namespace: mistakes}, stringData: {SECRET_VALUE: `+secretValue+`}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: empty, namespace: mistakes}}
`, "apply", "-f", "-")
	layout := filepath.Join(o.t.TempDir(), "layout")
	version := filepath.Base(filepath.Dir(o.release("ipam-in-cluster", "ipam-components.yaml")))
	o.tools.mustPublish(o.t, "--dir", filepath.Dir(o.release("ipam-in-cluster", "ipam-components.yaml")), "--artifact-url", layout+":"+version)
	o.clusterctl("init", "--ipam", "in-cluster:"+version)
	before := o.components()
	rows := declaredMistakes(layout)
	names := make([]string, len(rows))
	for i, m := range rows {
		var manifests string
		manifests, names[i] = m.manifests(o.t, i)
		r := o.tools.Kubectl(o.t.Context(), manifests, "--kubeconfig", o.kubeconfig(), "apply", "-f", "-")
		if m.condition == "" {
			o.t.Run(m.reason, func(t *testing.T) { rejected(t, r, m.words...) })
		} else if r.Failed {
			o.t.Errorf("%s: %s", m.reason, r)
		}
	}
	o.t.Run("in conditions", func(t *testing.T) {
		for i, m := range rows {
			if m.condition == "" {
				continue
			}
			t.Run(m.reason, func(t *testing.T) {
				t.Parallel()
				kind := cmp.Or(m.kind, infrastructure.kind)
				tells(t, c, kind, "mistakes", names[i], m.condition, append([]string{"False " + m.because + ": "}, m.words...)...)
			})
		}
	})
	o.t.Run("an older minor version", func(t *testing.T) {
		o.patch(infrastructure, `{"version": "v1.9.0"}`)
		tells(t, c, infrastructure.kind, infrastructure.namespace, infrastructure.name, preflighted, "False UnsupportedProviderDowngradeReason: ", "spec.version v1.9.0", "the installed v2.0.0")
		o.patch(infrastructure, `{"version": "v2.0.0"}`)
		tells(t, c, infrastructure.kind, infrastructure.namespace, infrastructure.name, preflighted, "True")
	})
	o.t.Run("a change while debug is true", func(t *testing.T) {
		nobody := operatedProvider{kind: "InfrastructureProvider", name: "nobody", namespace: "mistakes"}
		o.patch(nobody, `{"manager": {"debug": true}}`)
		rejected(t, o.tools.Kubectl(t.Context(), "", "--kubeconfig", o.kubeconfig(), "patch", nobody.object(), "-n", nobody.namespace, "--type", "merge",
			"-p", `{"spec": {"manager": {"syncPeriod": "1h"}}}`), "spec.manager", "while debug is true", "set it to false first")
	})
	o.t.Run("another namespace than that of clusterctl", func(t *testing.T) {
		p := operatedProvider{"IPAMProvider", "in-cluster", "mistakes", "ipam-in-cluster", "ipam-components.yaml"}
		o.declare(p, version)
		tells(t, c, p.kind, p.namespace, p.name, written, "False InstallFailed: ", "ipam-in-cluster is installed in namespace capi-ipam-in-cluster-system", "create this object in that namespace, or delete the provider first")
	})
	if diff := gocmp.Diff(before, o.components()); diff != "" {
		o.t.Errorf("mistakes changed the cluster (-before +after):\n%s", diff)
	}
	o.secret(secretValue)
	o.kubectl("", "delete", "namespace", "mistakes", "--timeout", "60s")
}

// components returns the names of all objects that installed providers consist of.
func (o *operated) components() []string {
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
func (o *operated) secret(value string) {
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
