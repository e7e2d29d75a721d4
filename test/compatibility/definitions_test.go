package compatibility

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// root is the root of the repository.
const root = "../.."

// facts returns the path of a file or folder of the reference data. Without reference data, it skips the test.
func facts(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("CAPI_FACTS_DIR")
	if dir == "" {
		dir = filepath.Join(root, "..", "shared", "facts")
	}
	path := filepath.Join(dir, "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the reference data is absent, so nothing was compared: set CAPI_FACTS_DIR to the directory with data/%s (%v)", name, err)
	}
	return path
}

// object is a part of a YAML document.
type object = map[string]any

// at returns a nested value, or nil.
func at(from any, keys ...string) any {
	for _, key := range keys {
		o, ok := from.(object)
		if !ok {
			return nil
		}
		from = o[key]
	}
	return from
}

// text returns a nested string, or "".
func text(from any, keys ...string) string {
	s, _ := at(from, keys...).(string)
	return s
}

// list returns a nested list, or nil.
func list(from any, keys ...string) []any {
	l, _ := at(from, keys...).([]any)
	return l
}

// readDefinitions reads the CustomResourceDefinitions that match any of the glob patterns, by name.
func readDefinitions(t *testing.T, patterns ...string) map[string]object {
	t.Helper()
	var paths []string
	for _, pattern := range patterns {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatalf("list definitions: %v", err)
		}
		paths = append(paths, matches...)
	}
	definitions := map[string]object{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("read definition: %v", err)
		}
		definition := object{}
		if err := yaml.Unmarshal(content, &definition); err != nil {
			t.Fatalf("parse %s: %v", path, err)
		}
		if text(definition, "kind") == "CustomResourceDefinition" {
			definitions[text(definition, "metadata", "name")] = definition
		}
	}
	if len(definitions) == 0 {
		t.Fatalf("no definitions match %s: generate them first", patterns)
	}
	return definitions
}

// ours returns the CRDs of this repository.
func ours(t *testing.T) map[string]object {
	t.Helper()
	return readDefinitions(t, filepath.Join(root, "providers", "*", "config", "crd", "*.yaml"), filepath.Join(root, "packages", "inventory", "crd", "*.yaml"))
}
