package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const root = "../../.."

func TestRelease(t *testing.T) {
	out := t.TempDir()
	if err := run(t.Context(), []string{"--root", root, "--version", "v2.0.5", "--out", out, "--registry", "example.org/images"}, os.Getenv); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(out, "clusterctl.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Providers []struct{ Name, Type, URL string } `json:"providers"`
	}
	if err := yaml.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Providers) < 4 {
		t.Errorf("want core, bootstrap, control plane and infrastructure, got %+v", config.Providers)
	}
	for _, p := range config.Providers {
		t.Run(p.Type+" "+p.Name, func(t *testing.T) {
			file := strings.Replace(p.URL, "/latest/", "/v2.0.5/", 1)
			objects, err := readObjects(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), "metadata.yaml")); err != nil {
				t.Error(err)
			}
			checkComponents(t, filepath.Base(filepath.Dir(filepath.Dir(file))), objects)
		})
	}
}

// TestAssets pins the file names in default provider URLs and documents, which users and scripts depend on.
func TestAssets(t *testing.T) {
	assets := filepath.Join(t.TempDir(), "assets")
	if err := run(t.Context(), []string{"--root", root, "--version", "v2.0.5", "--out", t.TempDir(), "--assets", assets}, os.Getenv); err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{
		"core-components.yaml":                                 {"cluster-api"},
		"bootstrap-components.yaml":                            {"bootstrap-kubeadm"},
		"control-plane-components.yaml":                        {"control-plane-kubeadm"},
		"cluster-api-components.yaml":                          {"bootstrap-kubeadm", "cluster-api", "control-plane-kubeadm"},
		"infrastructure-components-in-memory-development.yaml": {"infrastructure-in-memory"},
		"infrastructure-components-development.yaml":           {"infrastructure-docker"},
		"ipam-components.yaml":                                 {"ipam-in-cluster"},
		"runtime-extension-components.yaml":                    {"runtime-extension-test"},
		"addon-components.yaml":                                {"addon-fleet"},
		"operator-components.yaml":                             nil,
		"cluster-api-operator-2.0.5.tgz":                       nil,
		"cluster-template-development.yaml":                    nil, "clusterclass-quick-start.yaml": nil,
		"cluster-template-machine-pool.yaml": nil, "cluster-template-in-memory-machine-pool.yaml": nil,
		"metadata.yaml": nil, "cluster-template.yaml": nil, "cluster-template-in-memory-development.yaml": nil,
		"clusterclass-in-memory.yaml": nil, "clusterclass-in-memory-quick-start.yaml": nil, "crd-metrics-config.yaml": nil, "crd-metrics-config-v1beta1.yaml": nil, "argocd-health.yaml": nil, "flux-health.yaml": nil, "alerts.yaml": nil, "dashboard.json": nil,
		"runtime-sdk-openapi.yaml": nil, "runtime-sdk-openapi-v1beta1.yaml": nil,
	}
	files, err := os.ReadDir(assets)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(labels)), names); diff != "" {
		t.Error(diff)
	}
	for name, want := range labels {
		if filepath.Ext(name) == ".tgz" {
			continue
		}
		objects, err := readObjects(filepath.Join(assets, name))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, o := range objects {
			if label := o.GetLabels()["cluster.x-k8s.io/provider"]; label != "" {
				found[label] = true
			}
		}
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
			t.Errorf("%s has provider label %q, want %q", name, got, want)
		}
	}
}

// TestOperatorIsApplied checks that the manifests of the operator can be applied as they are: without variables, and with the label of what
// is not a provider.
func TestOperatorIsApplied(t *testing.T) {
	out := t.TempDir()
	if err := run(t.Context(), []string{"--root", root, "--version", "v2.0.5", "--out", out}, os.Getenv); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(out, "cluster-api", "v2.0.5", "operator-components.yaml")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "${") {
		t.Errorf("%s has variables", file)
	}
	objects, err := readObjects(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if label := o.GetLabels()["clusterctl.cluster.x-k8s.io/core"]; label != "capi-operator" {
			t.Errorf("%s %s has label %q", o.GetKind(), o.GetName(), label)
		}
		if label := o.GetLabels()["app.kubernetes.io/version"]; o.GetKind() == "Deployment" && label != "v2.0.5" {
			t.Errorf("Deployment %s has version %q", o.GetName(), label)
		}
	}
}

// TestAssetsWithOneName checks that files of two components cannot overwrite each other.
func TestAssetsWithOneName(t *testing.T) {
	r := release{files: filesOf(root), version: "v2.0.5"}
	components, err := loadComponents(root)
	if err != nil {
		t.Fatal(err)
	}
	components[0].ComponentsFile = components[1].File()
	f, err := newFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.manifests(f, components); err == nil || !strings.Contains(err.Error(), "rename one") {
		t.Errorf("got %v", err)
	}
}

// TestTemplates checks the names by which clusterctl finds templates: cluster-template-<flavor>.yaml, and
// clusterclass-<class>.yaml for its class.
func TestTemplates(t *testing.T) {
	out := t.TempDir()
	if err := run(t.Context(), []string{"--root", root, "--version", "v2.0.5", "--out", out}, os.Getenv); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ provider, flavor, class string }{
		{"infrastructure-in-memory", "", "in-memory"},
		{"infrastructure-in-memory", "-in-memory-development", "in-memory-quick-start"},
		{"infrastructure-docker", "-development", "quick-start"},
	} {
		flavor, class := tc.flavor, tc.class
		folder := filepath.Join(out, tc.provider, "v2.0.5")
		raw, err := os.ReadFile(filepath.Join(folder, "cluster-template"+flavor+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), "    classRef:\n      name: "+class+"\n") {
			t.Errorf("template %q does not use class %s", flavor, class)
		}
		for _, variable := range []string{"CLUSTER_NAME", "NAMESPACE", "KUBERNETES_VERSION", "CONTROL_PLANE_MACHINE_COUNT", "WORKER_MACHINE_COUNT", "SERVICE_CIDR", "POD_CIDR", "SERVICE_DOMAIN"} {
			if !strings.Contains(string(raw), "${"+variable) {
				t.Errorf("template %q has no variable %s", flavor, variable)
			}
		}
		objects, err := readObjects(filepath.Join(folder, "clusterclass-"+class+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		checkClass(t, class, objects)
	}
}

// checkClass checks that a file has a class and all templates that it references.
func checkClass(t *testing.T, class string, objects []*unstructured.Unstructured) {
	t.Helper()
	there := map[string]bool{}
	for _, o := range objects {
		there[o.GetKind()+" "+o.GetName()] = true
	}
	if !there["ClusterClass "+class] {
		t.Errorf("class %s is not in its file: %v", class, there)
	}
	for _, o := range objects {
		eachReference(o.Object, func(kind, name string) {
			if !there[kind+" "+name] {
				t.Errorf("class %s references %s %s, which is not in its file", class, kind, name)
			}
		})
		startup, found, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "behaviour", "vm", "provisioning", "startupDuration")
		if wanted := class == "in-memory-quick-start" && o.GetKind() == "InMemoryMachineTemplate"; found != wanted || wanted && startup != "30s" {
			t.Errorf("startup duration in %s %s: %q", o.GetKind(), o.GetName(), startup)
		}
	}
}

func eachReference(in any, do func(kind, name string)) {
	switch v := in.(type) {
	case map[string]any:
		if ref, ok := v["ref"].(map[string]any); ok {
			kind, _ := ref["kind"].(string)
			name, _ := ref["name"].(string)
			do(kind, name)
		}
		for _, field := range v {
			eachReference(field, do)
		}
	case []any:
		for _, item := range v {
			eachReference(item, do)
		}
	}
}

// checkComponents checks manifests for the properties that installers require.
func checkComponents(t *testing.T, label string, objects []*unstructured.Unstructured) {
	count := map[string]int{}
	namespace := ""
	for _, o := range objects {
		count[o.GetKind()]++
		if o.GetLabels()["cluster.x-k8s.io/provider"] != label {
			t.Errorf("%s %s has no provider label %s", o.GetKind(), o.GetName(), label)
		}
		if o.GetKind() == "Namespace" {
			namespace = o.GetName()
		}
	}
	withoutKinds := strings.HasPrefix(label, "runtime-extension-")
	if count["Namespace"] != 1 || count["Deployment"] != 1 || (count["CustomResourceDefinition"] == 0) != withoutKinds {
		t.Errorf("want one Namespace, one Deployment and CRDs, except for runtime extensions, got %v", count)
	}
	for _, o := range objects {
		if o.GetNamespace() != "" && o.GetNamespace() != namespace {
			t.Errorf("%s %s is in namespace %s, want %s", o.GetKind(), o.GetName(), o.GetNamespace(), namespace)
		}
		if o.GetKind() != "Deployment" {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		manager, _ := containers[0].(map[string]any)
		image, _ := manager["image"].(string)
		if manager["name"] != "manager" || !strings.HasPrefix(image, "example.org/images/") || !strings.HasSuffix(image, ":v2.0.5") {
			t.Errorf("want the container manager with this version and registry, got %v with image %s", manager["name"], image)
		}
	}
}

func TestInvalidVersions(t *testing.T) {
	for version, want := range map[string]string{
		"":        "--version and --out are required",
		"new":     `--version "new" is not a semantic version`,
		"2.0.0":   `--version "2.0.0" is not a semantic version with a leading v`,
		"v99.0.0": "has no release series 99.0 for --version v99.0.0: add it",
	} {
		out := t.TempDir()
		err := run(t.Context(), []string{"--root", root, "--version", version, "--out", out}, os.Getenv)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %q: want an error with %q, got %v", version, want, err)
		}
		if left, _ := os.ReadDir(out); len(left) > 0 {
			t.Errorf("version %q: no files must be written, found %v", version, left)
		}
	}
}
