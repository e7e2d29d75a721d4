package conversion

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// documents returns the objects in the YAML files of directories, and in the examples of Markdown files, by file.
func documents(t *testing.T, directories ...string) map[string][]*unstructured.Unstructured {
	t.Helper()
	found := map[string][]*unstructured.Unstructured{}
	for _, directory := range directories {
		err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			switch filepath.Ext(path) {
			case ".yaml":
				found[path] = objects(string(content))
			case ".md":
				for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(content), -1) {
					found[path] = append(found[path], objects(block[1])...)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// objects returns the objects in YAML, with values for the variables of templates. What is none is skipped.
func objects(text string) []*unstructured.Unstructured {
	variable := regexp.MustCompile(`\$\{([A-Za-z_0-9]+)(?::?[=-]([^}]*))?}`)
	text = variable.ReplaceAllStringFunc(text, func(match string) string {
		parts := variable.FindStringSubmatch(match)
		switch {
		case parts[2] != "":
			return parts[2]
		case strings.Contains(parts[1], "COUNT"), strings.Contains(parts[1], "PORT"):
			return "3"
		}
		return "x"
	})
	var list []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---") {
		u := &unstructured.Unstructured{}
		if yaml.Unmarshal([]byte(document), &u.Object) == nil && u.GetKind() != "" {
			// As from an API server, which sets the UID before it converts an object to store it.
			u.SetUID("1")
			if u.GetNamespace() == "" {
				u.SetNamespace("default")
			}
			raw, err := u.MarshalJSON()
			if err == nil && u.UnmarshalJSON(raw) == nil {
				list = append(list, u)
			}
		}
	}
	return list
}

// missing returns the paths at which an object has something that another one does not have. The other one may have more: what types
// write although it is unset.
func missing(own, other any, path string) []string {
	switch typed := own.(type) {
	case map[string]any:
		otherObject, _ := other.(map[string]any)
		if otherObject == nil && len(typed) > 0 {
			return []string{path}
		}
		var paths []string
		for _, name := range slices.Sorted(maps.Keys(typed)) {
			paths = append(paths, missing(typed[name], otherObject[name], path+"."+name)...)
		}
		return paths
	case []any:
		otherList, _ := other.([]any)
		if len(typed) != len(otherList) {
			return []string{path}
		}
		var paths []string
		for i := range typed {
			paths = append(paths, missing(typed[i], otherList[i], path+"[]")...)
		}
		return paths
	case nil:
		return nil
	}
	if !reflect.DeepEqual(own, other) {
		return []string{path}
	}
	return nil
}

// added returns the paths at which an object has something that another one does not have, except for what is empty.
func added(own, other any, path string) []string {
	switch typed := own.(type) {
	case map[string]any:
		otherObject, _ := other.(map[string]any)
		var paths []string
		for _, name := range slices.Sorted(maps.Keys(typed)) {
			paths = append(paths, added(typed[name], otherObject[name], path+"."+name)...)
		}
		return paths
	case []any:
		otherList, _ := other.([]any)
		if len(typed) != len(otherList) && len(typed) > 0 {
			return []string{path}
		}
		var paths []string
		for i := range typed {
			paths = append(paths, added(typed[i], otherList[i], path+"[]")...)
		}
		return paths
	}
	// Durations are written in another form, which missing compares.
	if other == nil && own != nil && own != false && own != int64(0) && own != "" && !strings.HasSuffix(path, "Ref.namespace") &&
		!strings.HasSuffix(path, ".ref.namespace") && !strings.HasSuffix(path, "Template.namespace") {
		return []string{path}
	}
	return nil
}

// TestDocuments shows that repositories with objects of v1beta1 converge: what is in them is what API servers return, whatever the version
// is in which they store it.
func TestDocuments(t *testing.T) {
	facts := os.Getenv("CAPI_FACTS_DIR")
	if facts == "" {
		facts = filepath.Join("..", "..", "..", "shared", "facts")
	}
	directories := []string{"../../docs/book", "../../examples"}
	for _, provider := range []string{"docker", "in-memory"} {
		directories = append(directories, filepath.Join("../../providers", "infrastructure-"+provider, "config", "templates"))
	}
	for _, directory := range []string{"templates-v1.7", "providers"} {
		if _, err := os.Stat(filepath.Join(facts, "data", directory)); err == nil {
			directories = append(directories, filepath.Join(facts, "data", directory))
		}
	}
	registry, kinds := New(nil), map[string]int{}
	for path, list := range documents(t, directories...) {
		for _, before := range list {
			gvk, ok := registry.KindOf(before)
			hub, _ := registry.Hub(gvk.GroupKind())
			if !ok || gvk.Version == hub {
				continue
			}
			kinds[gvk.Kind]++
			stored, after := newTree(gvk.GroupKind().WithVersion(hub)), newTree(gvk)
			if err := registry.Convert(t.Context(), before, stored); err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if err := registry.Convert(t.Context(), stored, after); err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if strings.HasSuffix(gvk.Kind, "Template") {
				if diff := cmp.Diff(before.Object, after.Object); diff != "" {
					t.Errorf("%s: %s %s differs from what was written:\n%s", path, gvk.Kind, before.GetName(), diff)
				}
				continue
			}
			if paths := append(missing(before.Object, after.Object, ""), added(after.Object, before.Object, "")...); len(paths) > 0 {
				t.Errorf("%s: %s %s differs at %s", path, gvk.Kind, before.GetName(), strings.Join(paths, ", "))
			}
		}
	}
	if len(kinds) < 8 {
		t.Errorf("found %v, want more kinds", kinds)
	}
	t.Log(kinds)
}
