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

// TestVersionsThatAreNotServedYet compares the definitions that the types of v1beta2 would have with those of Cluster API v1.14:
// schemas, printer columns, subresources, names and scope. Descriptions are our own.
func TestVersionsThatAreNotServedYet(t *testing.T) {
	const version = "v1beta2"
	for folder, patterns := range map[string][]string{
		"core":                 {"./api/core/v1beta2", "./api/addons/v1beta2", "./api/ipam/v1beta2", "./api/runtime/v1beta2"},
		"bootstrap-kubeadm":    {"./api/bootstrap/v1beta2"},
		"controlplane-kubeadm": {"./api/controlplane/v1beta2"},
		"docker":               {"./api/infrastructure/docker/v1beta2"},
	} {
		t.Run(folder, func(t *testing.T) {
			reference := map[string]map[string]string{}
			paths, err := filepath.Glob(filepath.Join(referenceFolder(t, "crds-v1.14"), folder, "*.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				flat := flatDefinition(t, content, version)
				// Ours have no defaults of the empty string, see dropEmptyDefaults.
				maps.DeleteFunc(flat, func(path, value string) bool { return strings.HasSuffix(path, ".default") && value == `""` })
				reference[filepath.Base(path)] = flat
			}
			actual := generated(t, version, patterns...)
			for _, name := range slices.Sorted(maps.Keys(reference)) {
				t.Run(name, func(t *testing.T) {
					for _, line := range differences(reference[name], actual[name]) {
						t.Error(line)
					}
				})
			}
			for name := range actual {
				if reference[name] == nil {
					t.Errorf("%s is not in the reference", name)
				}
			}
		})
	}
}

// generated returns the flat definitions of packages by file name.
func generated(t *testing.T, version string, patterns ...string) map[string]map[string]string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	all := func(string) bool { return true }
	flat := map[string]map[string]string{}
	for _, pattern := range patterns {
		out := artifacts{code: map[string]*bytes.Buffer{}, config: map[string]*bytes.Buffer{}}
		if err := derive(root, pattern, all, out); err != nil {
			t.Fatalf("derive from %s: %v", pattern, err)
		}
		for name, content := range out.config {
			finished, err := definitionOf(content.Bytes())
			if err != nil {
				t.Fatalf("finish %s: %v", name, err)
			}
			flat[name] = flatDefinition(t, finished.content, version)
		}
	}
	return flat
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
	if actual == nil {
		return []string{"the kind does not exist"}
	}
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
