package conformance

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	good = `apiVersion: v1
kind: Namespace
metadata: {name: toy-system, labels: {cluster.x-k8s.io/provider: infrastructure-toy}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: toymachines.infrastructure.cluster.x-k8s.io
  labels:
    cluster.x-k8s.io/provider: infrastructure-toy
    cluster.x-k8s.io/v1beta1: v1alpha1_v1beta1
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: ToyMachine}
  scope: Namespaced
  versions: [{name: v1beta1, served: true}, {name: v1alpha1, served: true}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: toy, namespace: toy-system, labels: {cluster.x-k8s.io/provider: infrastructure-toy}}
spec:
  replicas: ${TOY_REPLICAS:=1}
  template:
    spec:
      containers:
      - name: manager
        image: registry.example:5000/toy:v1.0.0
        args: ["--token=${TOY_TOKEN}"]
---
apiVersion: v1
kind: Service
metadata: {name: toy, namespace: toy-system, labels: {cluster.x-k8s.io/provider: infrastructure-toy}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: toy, namespace: toy-system, labels: {cluster.x-k8s.io/provider: infrastructure-toy}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: toy
  labels: {cluster.x-k8s.io/provider: infrastructure-toy}
  annotations: {cert-manager.io/inject-ca-from: toy-system/toy}
webhooks:
- name: a
  clientConfig: {service: {name: toy, namespace: toy-system}}
`
	goodMetadata = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 0, contract: v1beta1}
`
	goodTemplate = `apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: ${CLUSTER_NAME}
  namespace: ${NAMESPACE}
spec:
  topology: {class: toy, version: "${KUBERNETES_VERSION}"}
`
	goodClass = `apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata:
  name: toy
spec:
  infrastructure:
    ref: {kind: ToyClusterTemplate, name: toy}
`
	componentsFile = "infrastructure-components.yaml"
)

// release writes a release that keeps the contract, after changes: an empty file is removed.
func release(t *testing.T, changes map[string]string) string {
	t.Helper()
	files := map[string]string{
		componentsFile: good, "metadata.yaml": goodMetadata, "cluster-template.yaml": goodTemplate,
		"cluster-template-small.yaml": goodTemplate, "clusterclass-toy.yaml": goodClass,
	}
	maps.Copy(files, changes)
	folder := filepath.Join(t.TempDir(), "infrastructure-toy", "v1.0.0")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if content == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// changed returns the good components with one change.
func changed(t *testing.T, file, text, old, replacement string) map[string]string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("%s has no %q", file, old)
	}
	return map[string]string{file: strings.Replace(text, old, replacement, 1)}
}

func TestCheck(t *testing.T) {
	in := func(old, replacement string) map[string]string {
		return changed(t, componentsFile, good, old, replacement)
	}
	inTemplate := func(old, replacement string) map[string]string {
		return changed(t, "cluster-template.yaml", goodTemplate, old, replacement)
	}
	inClass := func(old, replacement string) map[string]string {
		return changed(t, "clusterclass-toy.yaml", goodClass, old, replacement)
	}
	inMetadata := func(old, replacement string) map[string]string {
		return changed(t, "metadata.yaml", goodMetadata, old, replacement)
	}
	for _, tc := range []struct {
		reason  string
		changes map[string]string
		// want has findings without the folder and the chapter.
		want []string
	}{
		{"a good release has no findings", nil, nil},
		{"no metadata", map[string]string{"metadata.yaml": ""}, []string{": error: metadata.yaml is missing: it maps release series to contracts"}},
		{"metadata of another kind", inMetadata("kind: Metadata", "kind: Data"), []string{`metadata.yaml: error: not valid: it has apiVersion "clusterctl.cluster.x-k8s.io/v1alpha3" and kind "Data": it must have clusterctl.cluster.x-k8s.io/v1alpha3 and Metadata`}},
		{"metadata without kind", inMetadata("kind: Metadata\n", ""), []string{`metadata.yaml:1: warning: apiVersion and kind are "clusterctl.cluster.x-k8s.io/v1alpha3" and "": they should be clusterctl.cluster.x-k8s.io/v1alpha3 and Metadata`}},
		{"metadata that is no YAML", map[string]string{"metadata.yaml": "{"}, []string{"metadata.yaml: error: not valid: error converting YAML to JSON: yaml: line 1: did not find expected node content"}},
		{"no series", inMetadata("minor: 0", "minor: 1"), []string{"metadata.yaml: error: releaseSeries has no entry for version v1.0.0: add major 1, minor 0 with its contract"}},
		{"a contract that does not exist", inMetadata("v1beta1}", "v1beta3}"), []string{`metadata.yaml: error: release series 1.0 has contract "v1beta3": it must be v1beta1 or v1beta2`}},
		{"a contract that the definitions do not claim", inMetadata("v1beta1}", "v1beta2}"), []string{"infrastructure-components.yaml:9: error: CustomResourceDefinition toymachines.infrastructure.cluster.x-k8s.io needs the label cluster.x-k8s.io/v1beta2: {versions, joined by _}: without it, the core provider rejects references to a ToyMachine"}},
		{"a version of the second contract is not served", in("v1alpha1_v1beta1\n", "v1alpha1_v1beta1\n    cluster.x-k8s.io/v1beta2: v1beta2\n"), []string{`infrastructure-components.yaml:12: error: CustomResourceDefinition toymachines.infrastructure.cluster.x-k8s.io has the label cluster.x-k8s.io/v1beta2: v1beta2, but does not serve the version "v1beta2"`}},
		{"one series twice", inMetadata("- {", "- {major: 1, minor: 0, contract: v1beta1}\n- {"), []string{"metadata.yaml: error: release series 1.0 is listed twice"}},
		{"no components", map[string]string{componentsFile: ""}, []string{": error: infrastructure-components.yaml is missing: it holds all objects of the provider"}},
		{"components with an unusual name", map[string]string{componentsFile: "", "infrastructure-components-dev.yaml": good}, []string{"infrastructure-components-dev.yaml: warning: the components file should be named infrastructure-components.yaml"}},
		{"empty components", map[string]string{componentsFile: "---\n"}, []string{"infrastructure-components.yaml: error: there is no object"}},
		{"a malformed variable", in("${TOY_TOKEN}", "${TOY_TOKEN"), []string{`infrastructure-components.yaml: error: the variables cannot be read: line 28: "args: [\"--token=${TOY_TOKEN\"]": missing closing brace: check the ${...} expression, or use $${...} to keep it unchanged`}},
		{"two Namespaces", in("---\n", "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b, labels: {cluster.x-k8s.io/provider: infrastructure-toy}}\n---\n"), []string{"infrastructure-components.yaml:5: error: Namespace b is the second one: only one is allowed, the target namespace"}},
		{"an object elsewhere", in("name: toy, namespace: toy-system", "name: toy, namespace: default"), []string{`infrastructure-components.yaml:20: error: Deployment default/toy has the namespace "default": all objects must belong to the target namespace toy-system`}},
		{"no label", in(", labels: {cluster.x-k8s.io/provider: infrastructure-toy}", ""), []string{"infrastructure-components.yaml:3: warning: Namespace toy-system should have the label cluster.x-k8s.io/provider: infrastructure-toy"}},
		{"the label of another provider", in("provider: infrastructure-toy\n    ", "provider: infrastructure-tin\n    "), []string{"infrastructure-components.yaml:10: error: CustomResourceDefinition toymachines.infrastructure.cluster.x-k8s.io has the label cluster.x-k8s.io/provider: infrastructure-tin: the value must be infrastructure-toy"}},
		{"no manager", in("- name: manager", "- name: main"), []string{"infrastructure-components.yaml:25: error: no container is named manager: the one with the controllers must be, otherwise --wait-providers does not wait for it"}},
		{"an image that may change", in("toy:v1.0.0", "toy:latest"), []string{"infrastructure-components.yaml:27: warning: image registry.example:5000/toy:latest has the tag latest: a release should always install the same image"}},
		{"a manager of one namespace", in(`"--token=${TOY_TOKEN}"`, `"--token=${TOY_TOKEN}", --namespace=x1`), []string{"infrastructure-components.yaml:28: warning: container manager of Deployment toy-system/toy has the argument --namespace=x1: a provider should reconcile the objects of all namespaces"}},
		{"a manager of all namespaces", in(`"--token=${TOY_TOKEN}"`, `"--token=${TOY_TOKEN}", --namespace=`), nil},
		{"an image without tag", in("toy:v1.0.0", "toy"), []string{"infrastructure-components.yaml:27: warning: image registry.example:5000/toy has neither tag nor digest: a release should always install the same image"}},
		{"no image", in("        image: registry.example:5000/toy:v1.0.0\n", ""), []string{"infrastructure-components.yaml:26: error: container manager of Deployment toy-system/toy has no image"}},
		{"a definition with another name", in("name: toymachines.", "name: toymachine."), []string{"infrastructure-components.yaml:8: error: CustomResourceDefinition toymachine.infrastructure.cluster.x-k8s.io of kind ToyMachine must be named toymachines.infrastructure.cluster.x-k8s.io, the name by which controllers find it; or add the annotation clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check if no contract refers to the kind"}},
		{"no contract", in("    cluster.x-k8s.io/v1beta1: v1alpha1_v1beta1\n", ""), []string{"infrastructure-components.yaml:9: error: CustomResourceDefinition toymachines.infrastructure.cluster.x-k8s.io needs the label cluster.x-k8s.io/v1beta1: {versions, joined by _}: without it, the core provider rejects references to a ToyMachine"}},
		{"the newest version, which the core provider uses, is not served", in("{name: v1beta1, served: true}", "{name: v1beta1, served: false}"), []string{`infrastructure-components.yaml:11: error: CustomResourceDefinition toymachines.infrastructure.cluster.x-k8s.io has the label cluster.x-k8s.io/v1beta1: v1alpha1_v1beta1, but does not serve the version "v1beta1"`}},
		{"an older version is not served", in("{name: v1alpha1, served: true}", "{name: v1alpha1, served: false}"), []string{`infrastructure-components.yaml:11: warning: CustomResourceDefinition toymachines.infrastructure.cluster.x-k8s.io has the label cluster.x-k8s.io/v1beta1: v1alpha1_v1beta1, but does not serve the version "v1alpha1"`}},
		{"a version of a kind that the core provider does not refer to is not served", map[string]string{componentsFile: strings.NewReplacer("toymachines", "toyservers", "ToyMachine", "ToyServer", "{name: v1beta1, served: true}", "{name: v1beta1, served: false}").Replace(good)}, []string{`infrastructure-components.yaml:11: warning: CustomResourceDefinition toyservers.infrastructure.cluster.x-k8s.io has the label cluster.x-k8s.io/v1beta1: v1alpha1_v1beta1, but does not serve the version "v1beta1"`}},
		{"a kind that is not namespaced", in("scope: Namespaced", "scope: Cluster"), []string{"infrastructure-components.yaml:15: error: CustomResourceDefinition toymachines.infrastructure.cluster.x-k8s.io has the scope Cluster: it must be Namespaced"}},
		{"a group that the core provider cannot read", map[string]string{componentsFile: strings.NewReplacer("toymachines.infrastructure.cluster", "toymachines.toy.cluster", "group: infrastructure", "group: toy").Replace(good)}, []string{"infrastructure-components.yaml:13: error: the core provider has no access to ToyMachine in group toy.cluster.x-k8s.io: add a ClusterRole for the group with the label cluster.x-k8s.io/aggregate-to-manager: \"true\""}},
		{"a webhook without Service", in("service: {name: toy", "service: {name: other"), []string{"infrastructure-components.yaml:46: error: a webhook of ValidatingWebhookConfiguration toy calls Service other, which is not in the file"}},
		{"a webhook without CA", in("  annotations: {cert-manager.io/inject-ca-from: toy-system/toy}\n", ""), []string{"infrastructure-components.yaml:45: error: a webhook of ValidatingWebhookConfiguration toy has no CA: add the annotation cert-manager.io/inject-ca-from: {namespace}/{certificate}"}},
		{"a webhook whose Certificate is missing", in("toy-system/toy}", "toy-system/tin}"), []string{"infrastructure-components.yaml:43: error: ValidatingWebhookConfiguration toy gets its CA from Certificate tin, which is not in the file"}},
		{"a document that is not an object", in("kind: Service\n", ""), []string{"infrastructure-components.yaml:30: error: not a Kubernetes object: Object 'Kind' is missing in '{\"apiVersion\":\"v1\",\"metadata\":{\"labels\":{\"cluster.x-k8s.io/provider\":\"infrastructure-toy\"},\"name\":\"toy\",\"namespace\":\"toy-system\"}}'", "infrastructure-components.yaml:45: error: a webhook of ValidatingWebhookConfiguration toy calls Service toy, which is not in the file"}},
		{"a template in two namespaces", inTemplate("spec:", "---\napiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nspec:"), []string{"cluster-template.yaml:9: error: Secret b/a has another namespace than the objects before: all objects must be in the same one, ${NAMESPACE}"}},
		{"a template with a Namespace", inTemplate("apiVersion", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion"), []string{"cluster-template.yaml:1: error: Namespace a must not be part of the template: the target namespace must be assumed to exist"}},
		{"a template without the version", inTemplate("${KUBERNETES_VERSION}", "v1.30.0"), []string{"cluster-template.yaml: warning: the variable KUBERNETES_VERSION is not used: the argument or flag of `clusterctl generate cluster` for it has no effect"}},
		{"a template without Cluster", inTemplate("kind: Cluster", "kind: Custer"), []string{"cluster-template.yaml: error: there is no Cluster"}},
		{"a template of a ClusterClass only", map[string]string{"cluster-template.yaml": strings.NewReplacer("kind: Cluster", "kind: ClusterClass", "class: toy, ", "").Replace(goodTemplate)}, []string{"cluster-template.yaml: warning: there is a ClusterClass, but no Cluster: users have to create Clusters themselves"}},
		{"a template of a class without file", inTemplate("class: toy", "class: tin"), []string{"cluster-template.yaml:7: warning: Cluster default/cluster uses ClusterClass tin, but there is no clusterclass-tin.yaml: users have to create the class first"}},
		{"a template in v1beta2 of a class without file", map[string]string{"cluster-template.yaml": strings.NewReplacer("v1beta1", "v1beta2", "class: toy", "classRef: {name: tin}").Replace(goodTemplate)}, []string{"cluster-template.yaml:7: warning: Cluster default/cluster uses ClusterClass tin, but there is no clusterclass-tin.yaml: users have to create the class first"}},
		{"a class in the file of another", inClass("name: toy\n", "name: tin\n"), []string{"clusterclass-toy.yaml: error: there is no ClusterClass toy", "clusterclass-toy.yaml:4: error: ClusterClass tin must be in the file clusterclass-tin.yaml, where `clusterctl generate cluster` looks for it"}},
		{"a class with a variable and namespaces", inClass("ref: {", "ref: {namespace: '${X}', "), []string{"clusterclass-toy.yaml: warning: the variable X is used: ClusterClass definitions should not have any, but variables of the ClusterClass", "clusterclass-toy.yaml:7: warning: a reference of ClusterClass toy should not have a namespace"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			folder := release(t, tc.changes)
			r, err := Open(folder, "", "")
			if err != nil {
				t.Fatal(err)
			}
			findings, err := r.Check()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range findings {
				text := strings.TrimSuffix(f.String(), " ("+f.Rule+")")
				got = append(got, strings.TrimPrefix(strings.TrimPrefix(text, folder), "/"))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestControlPlane(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "control-plane-toy", "v1.0.0")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	crd := strings.NewReplacer("toymachines.infrastructure", "toycontrolplanes.controlplane", "ToyMachine", "ToyControlPlane", "group: infrastructure", "group: controlplane",
		"infrastructure-toy", "control-plane-toy", "{name: v1beta1, served: true}", "{name: v1beta1, served: true, schema: {openAPIV3Schema: {properties: {spec: {properties: {replicas: {type: integer}}}, status: {x-kubernetes-preserve-unknown-fields: true}}}}}").Replace(good)
	for name, content := range map[string]string{"control-plane-components.yaml": crd, "metadata.yaml": goodMetadata} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(folder, "", "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Check()
	if err != nil {
		t.Fatal(err)
	}
	want := []Finding{{
		Severity: Error, File: filepath.Join(folder, "control-plane-components.yaml"), Line: 16, Rule: chapterCRDs,
		Message: "version v1beta1 of CustomResourceDefinition toycontrolplanes.controlplane.cluster.x-k8s.io has spec.replicas: it must have the subresource scale",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOpen(t *testing.T) {
	folder := release(t, nil)
	for _, tc := range []struct{ reason, folder, label, version, want string }{
		{"the folders tell provider and version", folder, "", "", ""},
		{"flags tell them as well", filepath.Dir(folder), "infrastructure-toy", "v1.0.0", ""},
		{"the folder is no version", filepath.Dir(folder), "", "", "rename the folder, or use --version"},
		{"the parent folder is no provider", folder, "toy", "", `"toy" is not a provider label, for example infrastructure-aws: rename the parent folder, or use --provider`},
		{"the folder is missing", folder + "x", "", "", "cannot read the release"},
		{"the folder is a file", filepath.Join(folder, componentsFile), "", "", "set the folder that holds all files of the release"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := Open(tc.folder, tc.label, tc.version)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("want error %q, got %v", tc.want, err)
			}
		})
	}
}
