package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// Empty objects and lists stay where v1beta2 allows them. Templates have the others in an annotation, which API servers restore for clients
// of v1beta1: JSON patches of a class add below them.
func TestConvertEmpty(t *testing.T) {
	const spec = "\nspec:\n  template:\n    spec:\n      "
	for _, tt := range []struct {
		reason string
		// in is an object without metadata in v1beta1, out its spec in v1beta2, back the spec that clients of v1beta1 see then.
		in, out, back string
		warning       string
	}{
		{
			reason: "an object that v1beta2 does not allow to be empty",
			in: "apiVersion: controlplane.cluster.x-k8s.io/v1beta1\nkind: KubeadmControlPlaneTemplate" + spec +
				"kubeadmConfigSpec: {clusterConfiguration: {apiServer: {}}}",
			out:  "null",
			back: "template: {metadata: {}, spec: {kubeadmConfigSpec: {clusterConfiguration: {apiServer: {}}}}}",
			warning: "KubeadmControlPlaneTemplate x: v1beta2 does not allow that spec.template.spec.kubeadmConfigSpec.clusterConfiguration.apiServer " +
				"is empty: the annotation conversion.cluster.x-k8s.io/older-version keeps it for patches of a ClusterClass that are for v1beta1; " +
				"patches for v1beta2 must add it with a value",
		},
		{
			reason: "beside one that is not",
			in: "apiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfigTemplate" + spec +
				"joinConfiguration: {nodeRegistration: {name: n1, kubeletExtraArgs: {}}}\n      files: []",
			out:  "template: {spec: {joinConfiguration: {nodeRegistration: {name: n1}}}}",
			back: "template: {metadata: {}, spec: {files: [], joinConfiguration: {discovery: {}, nodeRegistration: {name: n1, kubeletExtraArgs: {}}}}}",
			warning: "KubeadmConfigTemplate x: v1beta2 does not allow that spec.template.spec.files, " +
				"spec.template.spec.joinConfiguration.nodeRegistration.kubeletExtraArgs is empty: the annotation " +
				"conversion.cluster.x-k8s.io/older-version keeps it for patches of a ClusterClass that are for v1beta1; " +
				"patches for v1beta2 must add it with a value",
		},
		{
			reason: "maps and lists that may be empty",
			in: "apiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfigTemplate\nspec:\n  template:\n    metadata: {labels: {}}\n" +
				"    spec: {clusterConfiguration: {featureGates: {}}, users: [{name: u, sshAuthorizedKeys: []}]}",
			out: "template: {metadata: {labels: {}}, spec: {clusterConfiguration: {featureGates: {}}, users: [{name: u, sshAuthorizedKeys: []}]}}",
		},
		{
			reason: "selectors, without which the object is invalid",
			in:     "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineHealthCheck\nspec: {clusterName: c, selector: {}}",
			out:    "{clusterName: c, selector: {}}",
		},
		{
			reason: "outside of templates, others are the same as none",
			in: "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nspec: {clusterNetwork: {}, topology: {class: x, version: v1.31.0, " +
				"workers: {machineDeployments: [{class: a, name: b, strategy: {}}]}, variables: [{name: v, value: {}}]}}",
			out: "topology: {classRef: {name: x}, version: v1.31.0, workers: {machineDeployments: [{class: a, name: b}]}, " +
				"variables: [{name: v, value: {}}]}",
		},
		{
			reason: "a field that moved and may be empty",
			in: "apiVersion: cluster.x-k8s.io/v1beta1\nkind: ClusterClass\nspec: {variables: [{name: v, required: true, metadata: {labels: {}}, " +
				"schema: {openAPIV3Schema: {type: string}}}]}",
			out: "variables: [{name: v, required: true, schema: {openAPIV3Schema: {type: string}}}]",
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			out, messages := converted(t, tt.in+"\nmetadata: {name: x}\n")
			if diff := cmp.Diff(parsed(t, tt.out), out.Object["spec"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if warning, _, _ := strings.Cut(strings.TrimPrefix(messages, "Warning: "), "\n"); tt.warning != "" && warning != tt.warning {
				t.Errorf("it warns %q", warning)
			} else if tt.warning == "" && strings.Contains(messages, "Warning") {
				t.Errorf("it warns %q", messages)
			}
			if tt.back == "" {
				return
			}
			out.SetUID("u") // It is stored.
			back, err := conversion.Shared().In(t.Context(), "v1beta1", out)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parsed(t, tt.back), withoutTyped(back.Object["spec"])); diff != "" {
				t.Errorf("in v1beta1: -want +got:\n%s", diff)
			}
		})
	}
}

// withoutTyped removes what the types of v1beta1 add below clusterConfiguration.
func withoutTyped(spec any) any {
	object, _ := spec.(map[string]any)
	cluster, _, _ := unstructured.NestedMap(object, "template", "spec", "kubeadmConfigSpec", "clusterConfiguration")
	for _, name := range []string{"controllerManager", "dns", "etcd", "networking", "scheduler"} {
		delete(cluster, name)
	}
	if cluster != nil {
		_ = unstructured.SetNestedMap(object, cluster, "template", "spec", "kubeadmConfigSpec", "clusterConfiguration")
	}
	return spec
}

// converted returns what the command makes of an object, and its messages.
func converted(t *testing.T, in string) (*unstructured.Unstructured, string) {
	t.Helper()
	streams, buffers := iostreams.Test()
	buffers.In.WriteString(in)
	cmd := New(&factory.Factory{IO: streams}, nil)
	cmd.SetArgs([]string{})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	out.Object, _ = parsed(t, buffers.Out.String()).(map[string]any)
	return out, buffers.Err.String()
}

// parsed returns the value of a text in YAML.
func parsed(t *testing.T, text string) any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := map[string]any{}
	if err := yaml.Unmarshal([]byte(`{"value": `+string(raw)+`}`), &u); err != nil {
		t.Fatal(err)
	}
	return u["value"]
}

// The list of what may be empty is that of the definitions of v1beta2.
func TestMayBeEmpty(t *testing.T) {
	files, err := filepath.Glob("../../../providers/*/config/crd/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	found := map[string]bool{}
	for _, file := range files {
		raw, err := os.ReadFile(file) // #nosec G304 -- of the repository
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(raw, crd); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(crd.Spec.Group, "infrastructure.") {
			continue
		}
		for _, version := range crd.Spec.Versions {
			spec, ok := version.Schema.OpenAPIV3Schema.Properties["spec"]
			if version.Name == "v1beta2" && ok {
				checkEmpty(t, found, crd.Spec.Names.Kind, path{"spec"}, spec)
			}
		}
	}
	for _, end := range emptyInV1Beta2() {
		if !found[end] {
			t.Errorf("no definition of v1beta2 allows that %s is empty", end)
		}
	}
}

// checkEmpty compares mayBeEmpty with a schema and those in it, and sets the ends of paths that it found.
func checkEmpty(t *testing.T, found map[string]bool, kind string, at path, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	isObject, isList := schema.Type == "object", schema.Type == "array"
	may := isObject && schema.MinProperties == nil && len(schema.Required) == 0 ||
		isList && (schema.MinItems == nil || *schema.MinItems == 0)
	if isObject || isList {
		if got := at.mayBeEmpty(); got != may {
			t.Errorf("%s: %s may be empty by its definition: %v; here: %v", kind, at, may, got)
		}
		for _, end := range emptyInV1Beta2() {
			if strings.HasSuffix("."+strings.Join(at, "."), "."+end) {
				found[end] = true
			}
		}
	}
	for name, nested := range schema.Properties {
		checkEmpty(t, found, kind, at.with(name), nested)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		for name, nested := range schema.Items.Schema.Properties {
			checkEmpty(t, found, kind, at.with(name), nested)
		}
	}
}
