package generate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// referenceFolder returns a folder of the reference data. Without reference data, it skips the test.
func referenceFolder(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("CAPI_FACTS_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "facts")
	}
	path := filepath.Join(dir, "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the reference data is absent, so nothing was compared: set CAPI_FACTS_DIR to the directory with data/%s (%v)", name, err)
	}
	return path
}

// TestV1Beta2 compares the definitions of v1beta2, whether it is served or not, with those of Cluster API v1.14: schemas, printer
// columns, subresources, names and scope. Descriptions are our own. What is served is compared in test/compatibility, too.
func TestV1Beta2(t *testing.T) {
	// Fields of our own, which test/compatibility lists, too.
	const workers = ".topology.properties.workers.properties."
	own := map[string][]string{
		"cluster.x-k8s.io_clusters.yaml": {
			workers + "machineDeployments.items.properties.version.", workers + "machinePools.items.properties.version.",
		},
		"runtime.cluster.x-k8s.io_extensionconfigs.yaml":          {".status.properties.handlers.items.properties.payloadVersion."},
		"infrastructure.cluster.x-k8s.io_devmachinepools.yaml":    {".status.properties.initialization."},
		"infrastructure.cluster.x-k8s.io_devmachines.yaml":        {".status.properties.loadBalancerConfigured."},
		"infrastructure.cluster.x-k8s.io_dockermachinepools.yaml": {".status.properties.initialization."},
	}
	reference, actual := references(t), generated(t)
	for _, name := range slices.Sorted(maps.Keys(reference)) {
		t.Run(name, func(t *testing.T) {
			want := flatDefinition(t, reference[name], hubVersion)
			// Ours have no defaults of the empty string, see dropEmptyDefaults.
			maps.DeleteFunc(want, func(path, value string) bool { return strings.HasSuffix(path, ".default") && value == `""` })
			if actual[name] == nil {
				t.Fatal("the kind does not exist")
			}
			got := flatDefinition(t, actual[name].content, hubVersion)
			maps.DeleteFunc(got, func(path, _ string) bool {
				return slices.ContainsFunc(own[name], func(part string) bool { return strings.Contains(path, part) })
			})
			for _, line := range differences(want, got) {
				t.Error(line)
			}
		})
	}
	for name, d := range actual {
		if hasVersion(parsed(t, d.content), hubVersion) && reference[name] == nil {
			t.Errorf("%s is not in the reference", name)
		}
	}
}

// TestServedVersions compares which versions are served, stored and deprecated with v1.14, and checks how they are converted.
func TestServedVersions(t *testing.T) {
	next := generated(t)
	for name, content := range references(t) {
		want, got := parsed(t, content), parsed(t, next[name].content)
		// Versions that are not served are those of v1.7, see unservedVersions.
		got.Spec.Versions = slices.DeleteFunc(got.Spec.Versions, func(v version) bool { return !v.Served })
		if diff := cmp.Diff(states(want), states(got)); diff != "" {
			t.Errorf("%s: versions (-reference +ours):\n%s", name, diff)
		}
		if diff := cmp.Diff(len(got.Spec.Versions) > 1, got.Spec.Conversion != nil); diff != "" {
			t.Errorf("%s: several versions, and a conversion between them (-versions +conversion):\n%s", name, diff)
		}
	}
}

type version = apiextensionsv1.CustomResourceDefinitionVersion

// states returns how versions are used.
func states(d *apiextensionsv1.CustomResourceDefinition) []string {
	var all []string
	for _, v := range d.Spec.Versions {
		all = append(all, fmt.Sprintf("%s served: %t, stored: %t, deprecated: %t", v.Name, v.Served, v.Storage, v.Deprecated))
	}
	return all
}

// references returns the definitions of v1.14 by file name. It skips the test if there are none.
func references(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, folder := range []string{"core", "bootstrap-kubeadm", "controlplane-kubeadm", "docker"} {
		paths, err := filepath.Glob(filepath.Join(referenceFolder(t, "crds-v1.14"), folder, "*.yaml"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d definitions, %v", folder, len(paths), err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(path)] = content
		}
	}
	return all
}

// generated returns our definitions by file name.
func generated(t *testing.T) map[string]*definition {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	out := artifacts{code: map[string]*bytes.Buffer{}, config: map[string]*bytes.Buffer{}}
	if err := derive(root, "./api/...", out); err != nil {
		t.Fatal(err)
	}
	all := map[string]*definition{}
	for name, content := range out.config {
		d, err := definitionOf(content.Bytes())
		if err != nil {
			t.Fatalf("finish %s: %v", name, err)
		}
		if d != nil {
			all[name] = d
		}
	}
	return all
}

// parsed returns a definition.
func parsed(t *testing.T, content []byte) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(content, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// flatDefinition returns names, scope and one version of a definition as a map from paths to values, without descriptions.
func flatDefinition(t *testing.T, content []byte, version string) map[string]string {
	t.Helper()
	var definition struct {
		Spec struct {
			Names    map[string]any   `json:"names"`
			Scope    string           `json:"scope"`
			Versions []map[string]any `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(content, &definition); err != nil {
		t.Fatal(err)
	}
	flat := map[string]string{"scope": definition.Spec.Scope}
	flatten(flat, "names", definition.Spec.Names)
	for _, v := range definition.Spec.Versions {
		if v["name"] == version {
			flatten(flat, version, v)
		}
	}
	return flat
}

// flatten adds the values at a path and below it. Lists of objects are numbered; those of other values are one value, and the order
// of required fields does not matter.
func flatten(into map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			into[path] = "{}"
		}
		for key, below := range v {
			if _, isText := below.(string); isText && key == "description" {
				continue
			}
			flatten(into, path+"."+key, below)
		}
	case []any:
		if len(v) > 0 {
			if _, isObject := v[0].(map[string]any); isObject {
				for i, below := range v {
					flatten(into, fmt.Sprintf("%s[%d]", path, i), below)
				}
				return
			}
		}
		texts := make([]string, 0, len(v))
		for _, below := range v {
			texts = append(texts, asJSON(below))
		}
		if strings.HasSuffix(path, ".required") || strings.HasSuffix(path, ".enum") {
			slices.Sort(texts)
		}
		into[path] = "[" + strings.Join(texts, ",") + "]"
	default:
		into[path] = asJSON(v)
	}
}

// asJSON returns a value as compact JSON.
func asJSON(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(content)
}

// differences lists the paths where a flat definition differs from the reference.
func differences(reference, actual map[string]string) []string {
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(reference)) {
		ours, ok := actual[path]
		switch {
		case !ok:
			lines = append(lines, fmt.Sprintf("%s: want %s, got nothing", path, reference[path]))
		case ours != reference[path]:
			lines = append(lines, fmt.Sprintf("%s: want %s, got %s", path, reference[path], ours))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(actual)) {
		if _, ok := reference[path]; !ok {
			lines = append(lines, fmt.Sprintf("%s: want nothing, got %s", path, actual[path]))
		}
	}
	return lines
}
