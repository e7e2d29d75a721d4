package generate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// raw returns a definition as written by the generator.
func raw(group, kind, plural, version, nameSchema string) string {
	return strings.NewReplacer("GROUP", group, "KIND", kind, "PLURAL", plural, "VERSION", version, "NAME", nameSchema).Replace(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: (devel)
  creationTimestamp: null
  name: PLURAL.GROUP
spec:
  group: GROUP
  names: {kind: KIND, plural: PLURAL}
  scope: Namespaced
  versions:
  - name: VERSION
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          name: NAME
          list: {type: array, items: {type: object, additionalProperties: NAME}}
`)
}

// finished returns a definition as it is stored; labels is the block of labels.
func finished(group, kind, plural, version, labels, nameSchema string) string {
	indent := func(depth int) string {
		pad := strings.Repeat(" ", depth)
		return pad + strings.ReplaceAll(nameSchema, "\n", "\n"+pad) + "\n"
	}
	return `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
` + labels + `  name: ` + plural + "." + group + `
spec:
  group: ` + group + `
  names:
    kind: ` + kind + `
    plural: ` + plural + `
  scope: Namespaced
  versions:
  - name: ` + version + `
    schema:
      openAPIV3Schema:
        properties:
          list:
            items:
              additionalProperties:
` + indent(16) + `              type: object
            type: array
          name:
` + indent(12) + `        type: object
    served: true
    storage: true
`
}

// withUnserved adds unserved versions to a definition.
func withUnserved(definition string, names ...string) string {
	unserved := "  versions:\n"
	for _, name := range names {
		unserved += `  - deprecated: true
    name: ` + name + `
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
    served: false
    storage: false
    subresources:
      status: {}
`
	}
	return strings.Replace(definition, "  versions:\n", unserved, 1)
}

// withV1Beta2 adds a version to a definition as written by the generator.
func withV1Beta2(definition string) string {
	return definition + `  - name: v1beta2
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object}
`
}

// servingV1Beta2 adds the version to a finished definition, in which it stores objects.
func servingV1Beta2(definition string) string {
	definition = strings.Replace(definition, "spec:\n", `spec:
  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service:
          name: webhook-service
          namespace: system
          path: /convert
      conversionReviewVersions:
      - v1
`, 1)
	definition = strings.Replace(definition, "  - name: v1beta1\n", "  - deprecated: true\n    name: v1beta1\n", 1)
	return strings.Replace(definition, "    storage: true\n", "    storage: false\n", 1) + `  - name: v1beta2
    schema:
      openAPIV3Schema:
        type: object
    served: true
    storage: true
`
}

func TestDefinitionOf(t *testing.T) {
	const infrastructure = "infrastructure.cluster.x-k8s.io"
	label := func(value string) string { return "  labels:\n    cluster.x-k8s.io/v1beta1: " + value + "\n" }
	tests := []struct {
		reason  string
		raw     string
		want    *definition
		failure string
	}{
		{
			reason: "core kinds have no contract label, and no generator version",
			raw:    raw("cluster.x-k8s.io", "Cluster", "clusters", "v1beta1", "{type: string}"),
			want: &definition{dir: "providers/core/config/crd",
				content: []byte(withUnserved(finished("cluster.x-k8s.io", "Cluster", "clusters", "v1beta1", "", "type: string"), "v1alpha3", "v1alpha4"))},
		},
		{
			reason: "provider kinds have the version that implements the contract",
			raw:    raw(infrastructure, "DockerCluster", "dockerclusters", "v1beta1", "{type: string}"),
			want: &definition{dir: "providers/infrastructure-docker/config/crd",
				content: []byte(withUnserved(finished(infrastructure, "DockerCluster", "dockerclusters", "v1beta1", label("v1beta1"), "type: string"), "v1alpha3", "v1alpha4"))},
		},
		{
			reason: "a newer kind has fewer unserved versions",
			raw:    raw("cluster.x-k8s.io", "ClusterClass", "clusterclasses", "v1beta1", "{type: string}"),
			want: &definition{dir: "providers/core/config/crd",
				content: []byte(withUnserved(finished("cluster.x-k8s.io", "ClusterClass", "clusterclasses", "v1beta1", "", "type: string"), "v1alpha4"))},
		},
		{
			reason: "v1beta2 stores objects, the version before is deprecated, and both implement a contract",
			raw:    withV1Beta2(raw(infrastructure, "DevCluster", "devclusters", "v1beta1", "{type: string}")),
			want: &definition{dir: "providers/infrastructure-docker/config/crd", content: []byte(servingV1Beta2(finished(infrastructure, "DevCluster",
				"devclusters", "v1beta1", label("v1beta1")+"    cluster.x-k8s.io/v1beta2: v1beta2\n", "type: string")))},
		},
		{
			reason: "a kind with one version needs no conversion, and implements both contracts",
			raw:    raw(infrastructure, "DevMachinePool", "devmachinepools", "v1beta2", "{type: string}"),
			want: &definition{dir: "providers/infrastructure-docker/config/crd", content: []byte(finished(infrastructure, "DevMachinePool",
				"devmachinepools", "v1beta2", "  labels:\n    cluster.x-k8s.io/v1beta1: v1beta2\n    cluster.x-k8s.io/v1beta2: v1beta2\n", "type: string"))},
		},
		{
			reason: "two providers share a group, with different versions; a kind without v1beta2 stays as it is",
			raw:    raw(infrastructure, "InMemoryCluster", "inmemoryclusters", "v1alpha1", "{type: string}"),
			want: &definition{dir: "providers/infrastructure-in-memory/config/crd",
				content: []byte(finished(infrastructure, "InMemoryCluster", "inmemoryclusters", "v1alpha1", label("v1alpha1"), "type: string"))},
		},
		{
			reason: "defaults of the empty string are dropped at any depth",
			raw:    raw("addons.cluster.x-k8s.io", "Set", "sets", "v1beta1", `{type: string, default: ""}`),
			want: &definition{dir: "providers/core/config/crd",
				content: []byte(finished("addons.cluster.x-k8s.io", "Set", "sets", "v1beta1", "", "type: string"))},
		},
		{
			reason: "other defaults are kept",
			raw:    raw("addons.cluster.x-k8s.io", "Set", "sets", "v1beta1", `{type: string, default: "x"}`),
			want: &definition{dir: "providers/core/config/crd",
				content: []byte(finished("addons.cluster.x-k8s.io", "Set", "sets", "v1beta1", "", "default: x\ntype: string"))},
		},
		{
			reason: "file formats are not served",
			raw:    raw("clusterctl.cluster.x-k8s.io", "Metadata", "metadata", "v1alpha3", "{type: string}"),
		},
		{
			reason:  "a group without a component is an error",
			raw:     raw("stray.cluster.x-k8s.io", "Stray", "strays", "v1", "{type: string}"),
			failure: `no component owns group "stray.cluster.x-k8s.io": add it to the list of components`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := definitionOf([]byte(tt.raw))
			failure := ""
			if err != nil {
				failure = err.Error()
			}
			if diff := cmp.Diff(tt.failure, failure); diff != "" {
				t.Errorf("error differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(readable(tt.want), readable(got)); diff != "" {
				t.Errorf("definition differs (-want +got):\n%s", diff)
			}
		})
	}
}

// readable turns a definition into text.
func readable(d *definition) string {
	if d == nil {
		return ""
	}
	return d.dir + "\n" + string(d.content)
}

func TestSync(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("providers/core/config/crd/cluster.x-k8s.io_olds.yaml", "stale")
	write("providers/core/config/crd/cluster.x-k8s.io_sames.yaml", "same")
	write("providers/core/config/crd/cluster.x-k8s.io_others.yaml", "before")
	write("providers/core/config/crd/kustomization.yaml", "unrelated")
	files := map[string][]byte{
		at("providers/core/config/crd/cluster.x-k8s.io_sames.yaml"):  []byte("same"),
		at("providers/core/config/crd/cluster.x-k8s.io_others.yaml"): []byte("after"),
		at("api/a/zz_generated.deepcopy.go"):                         []byte("new"),
	}

	var got [][]string
	for range 2 {
		changed, err := sync(root, files)
		if err != nil {
			t.Fatalf("sync: %v", err)
		}
		got = append(got, changed)
	}
	want := [][]string{
		{"api/a/zz_generated.deepcopy.go", "providers/core/config/crd/cluster.x-k8s.io_olds.yaml", "providers/core/config/crd/cluster.x-k8s.io_others.yaml"},
		nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changed files in two runs (-want +got):\n%s", diff)
	}

	content := map[string]string{}
	present, err := filepath.Glob(at("providers/core/config/crd/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(present, at("api/a/zz_generated.deepcopy.go")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		content[relative(root, path)] = string(text)
	}
	wantContent := map[string]string{
		"providers/core/config/crd/cluster.x-k8s.io_sames.yaml":  "same",
		"providers/core/config/crd/cluster.x-k8s.io_others.yaml": "after",
		"providers/core/config/crd/kustomization.yaml":           "unrelated",
		"api/a/zz_generated.deepcopy.go":                         "new",
	}
	if diff := cmp.Diff(wantContent, content); diff != "" {
		t.Errorf("files differ (-want +got):\n%s", diff)
	}
}
