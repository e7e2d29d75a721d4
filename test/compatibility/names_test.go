package compatibility

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// column is a printer column without its description.
type column struct {
	Name, Path, Type string
	Priority         float64
}

// version has the properties of a version that `kubectl get` and generic clients may depend on.
type version struct {
	Storage      bool
	Columns      []column
	Subresources any
}

// surface has the properties of a kind, besides fields, that clients may depend on.
type surface struct {
	Names    any
	Scope    string
	Versions map[string]version
}

// TestNames compares the names of kinds, and the columns and subresources of each served version.
func TestNames(t *testing.T) {
	older := surfaces(readDefinitions(t, filepath.Join(facts(t, "crds-v1.7"), "*", "*.yaml")))
	newer := surfaces(readDefinitions(t, filepath.Join(facts(t, "crds-v1.14"), "*", "*.yaml")))
	actual := surfaces(ours(t))
	reference := maps.Clone(newer)
	maps.Copy(reference, older)
	delete(reference, "metadata.clusterctl.cluster.x-k8s.io") // The format of a provider's metadata.yaml, which is not served.
	for _, name := range slices.Sorted(maps.Keys(reference)) {
		t.Run(name, func(t *testing.T) {
			if _, ok := actual[name]; !ok {
				t.Fatalf("%s is not served", name)
			}
			if diff := cmp.Diff(expected(t, name, older, newer), actual[name], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("names, columns or subresources differ (-reference +ours):\n%s", diff)
			}
		})
	}
}

// expected returns the surface that a definition of ours must have: versions of v1.7 as they are there, and others as in v1.14.
func expected(t *testing.T, name string, older, newer map[string]surface) surface {
	t.Helper()
	was, known := older[name]
	want, kept := newer[name]
	if !kept {
		return was
	}
	for version, v := range was.Versions {
		later := want.Versions[version]
		later.Storage = v.Storage
		if diff := cmp.Diff(v, later, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s differs (-v1.7 +v1.14):\n%s", version, diff)
		}
	}
	if diff := cmp.Diff(was.Names, want.Names); known && diff != "" {
		t.Errorf("names differ (-v1.7 +v1.14):\n%s", diff)
	}
	return want
}

// surfaces returns the surfaces of CRDs.
func surfaces(definitions map[string]object) map[string]surface {
	all := map[string]surface{}
	for name, definition := range definitions {
		s := surface{
			Names:    at(definition, "spec", "names"),
			Scope:    text(definition, "spec", "scope"),
			Versions: map[string]version{},
		}
		for _, v := range list(definition, "spec", "versions") {
			if at(v, "served") != true {
				continue
			}
			s.Versions[text(v, "name")] = version{
				Storage:      at(v, "storage") == true,
				Columns:      columns(v),
				Subresources: at(v, "subresources"),
			}
		}
		all[name] = s
	}
	return all
}

// columns returns the printer columns of a version in order.
func columns(v any) []column {
	var all []column
	for _, c := range list(v, "additionalPrinterColumns") {
		priority, _ := at(c, "priority").(float64)
		all = append(all, column{Name: text(c, "name"), Path: text(c, "jsonPath"), Type: text(c, "type"), Priority: priority})
	}
	return all
}
