package compatibility

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// program is the product's code, without tests.
type program struct {
	files []*ast.File
	types map[*ast.File]bool // files of api/, whose constants count only if other files use them
	named map[string][]string
}

// literals returns all strings in the product's code outside of api/: literals, concatenations of literals and constants, and
// the values of constants and variables that are used. Names are resolved without their packages.
func literals(t *testing.T) map[string]bool {
	t.Helper()
	p := &program{types: map[*ast.File]bool{}, named: map[string][]string{}}
	for _, dir := range []string{"api", "clusterctl", "packages", "providers", "sdk"} {
		p.read(t, dir)
	}
	for range 2 { // A concatenation may use a constant of a later file.
		p.names()
	}
	return p.used()
}

func (p *program) read(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		p.files = append(p.files, file)
		p.types[file] = dir == "api"
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// names collects the values of constants and variables. Those of different packages may have the same name.
func (p *program) names() {
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, value := range spec.Values {
				if i >= len(spec.Names) {
					break
				}
				name := spec.Names[i].Name
				ast.Inspect(value, func(n ast.Node) bool {
					if e, ok := n.(ast.Expr); ok {
						p.named[name] = union(p.named[name], p.texts(e))
					}
					return true
				})
			}
			return true
		})
	}
}

func (p *program) used() map[string]bool {
	found := map[string]bool{}
	for _, file := range p.files {
		if p.types[file] {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				for _, text := range p.texts(e) {
					found[text] = true
				}
			}
			return true
		})
	}
	return found
}

// texts returns the possible values of an expression of literals and names.
func (p *program) texts(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); e.Kind == token.STRING && err == nil {
			return []string{text}
		}
	case *ast.Ident:
		return p.named[e.Name]
	case *ast.SelectorExpr:
		return p.named[e.Sel.Name]
	case *ast.BinaryExpr:
		var joined []string
		for _, left := range p.texts(e.X) {
			for _, right := range p.texts(e.Y) {
				if e.Op == token.ADD {
					joined = append(joined, left+right)
				}
			}
		}
		return joined
	}
	return nil
}

func union(a, b []string) []string {
	known := map[string]bool{}
	for _, text := range a {
		known[text] = true
	}
	for _, text := range b {
		if !known[text] {
			a = append(a, text)
			known[text] = true
		}
	}
	return a
}
