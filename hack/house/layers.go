package house

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// module is the import path of the root of the repository.
const module = "sigs.k8s.io/cluster-api/"

// layers are the top folders from the top to the bottom, see docs/layout.md. A package imports packages of its own layer and of those
// below it. Folders that are not listed are not checked: they are tools and examples.
var layers = [][]string{
	{"cmd", "release", "test"}, {"clusterctl", "standalone"}, {"providers"}, {"packages", "backup", "docs"}, {"sdk"}, {"api", "exp"},
}

// layerOf returns the index of a path's layer, and whether it has one.
func layerOf(path string) (int, bool) {
	top, _, _ := strings.Cut(path, "/")
	for i, layer := range layers {
		if slices.Contains(layer, top) {
			return i, true
		}
	}
	return 0, false
}

// imports records imports of a higher layer. Tests also import what is in test.
func (c *checker) imports(name string, f *ast.File) {
	own, ok := layerOf(name)
	if !ok {
		return
	}
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		imported, inside := strings.CutPrefix(path, module)
		if err != nil || !inside || strings.HasPrefix(imported, "test/") && strings.HasSuffix(name, "_test.go") {
			continue
		}
		if layer, ok := layerOf(imported); ok && layer < own {
			c.violated(name, c.files.Position(spec.Pos()).Line, importUp)
		}
	}
}

// folderOf returns the folder for which violations of ratchets are counted: the top one, or the component.
func folderOf(name string) string {
	parts := strings.Split(name, "/")
	switch {
	case len(parts) == 1:
		return "."
	case parts[0] == "providers" && len(parts) > 2:
		return fmt.Sprintf("%s/%s", parts[0], parts[1])
	}
	return parts[0]
}
