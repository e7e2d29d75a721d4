package controlplane

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The packages in the list of doc.go may only import packages that come before them.
func TestImportsPointDown(t *testing.T) {
	const prefix = "sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/"
	files := token.NewFileSet()
	doc, err := parser.ParseFile(files, "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	for _, item := range regexp.MustCompile(`(?m)^  - ([a-z, ]+):`).FindAllStringSubmatch(doc.Doc.Text(), -1) {
		packages = append(packages, strings.Split(item[1], ", ")...)
	}
	if len(packages) < 10 {
		t.Fatalf("the list of doc.go has %d packages", len(packages))
	}
	for i, name := range packages {
		sources, err := filepath.Glob(filepath.Join("..", name, "*.go"))
		if err != nil || len(sources) == 0 {
			t.Fatalf("package %s: %d files, error %v", name, len(sources), err)
		}
		for _, source := range sources {
			if strings.HasSuffix(source, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(files, source, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range file.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if imported, ok := strings.CutPrefix(path, prefix); ok && slices.Contains(packages[i:], imported) {
					t.Errorf("%s imports package %s, which comes later", source, imported)
				}
			}
		}
	}
}
