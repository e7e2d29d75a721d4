package controlplane

import (
	"go/build"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The packages in the list of doc.go may only import packages that come before them.
func TestImportsPointDown(t *testing.T) {
	const prefix = "sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/"
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	for _, item := range regexp.MustCompile(`(?m)^//   - ([a-z, ]+):`).FindAllSubmatch(doc, -1) {
		packages = append(packages, strings.Split(string(item[1]), ", ")...)
	}
	if len(packages) < 9 {
		t.Fatalf("the list of doc.go has %d packages", len(packages))
	}
	for i, name := range packages {
		p, err := build.ImportDir(filepath.Join("..", name), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range p.Imports {
			if imported, ok := strings.CutPrefix(path, prefix); ok && slices.Contains(packages[i:], imported) {
				t.Errorf("package %s imports package %s, which comes later", name, imported)
			}
		}
	}
}
