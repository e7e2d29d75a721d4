// Package aliases writes Go packages that have the API of other packages under further import paths: those of releases that had them
// elsewhere. A program that was written for such a path compiles unmodified, and its types are identical to those of all others.
//
// What does not belong here: which names the API has, which is decided by its home.
package aliases

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const (
	module = "sigs.k8s.io/cluster-api/"
	file   = "zz_generated.aliases.go"
)

// alias is a package to write.
type alias struct {
	// path and home are import paths below the module; home has what path is an alias of.
	path, home string
	// since is for its documentation: which releases have it at this path.
	since string
	// prefix selects names that start with it. If empty, all are selected.
	prefix string
	// without are files of home whose names are left out.
	without []string
}

// all returns the packages to write. Those of the second half have been in the module sigs.k8s.io/cluster-api/api since v1.14.
func all() []alias {
	return []alias{
		{path: "api/v1beta1", home: "api/core/v1beta1", since: "v1.7"},
		{path: "bootstrap/kubeadm/api/v1beta1", home: "api/bootstrap/v1beta1", since: "v1.7"},
		{path: "controlplane/kubeadm/api/v1beta1", home: "api/controlplane/v1beta1", since: "v1.7"},
		{path: "exp/api/v1beta1", home: "api/core/v1beta1", since: "v1.7", prefix: "MachinePool"},
		{path: "exp/addons/api/v1beta1", home: "api/addons/v1beta1", since: "v1.7"},
		{path: "exp/ipam/api/v1alpha1", home: "api/ipam/v1alpha1", since: "v1.7"},
		{path: "exp/ipam/api/v1beta1", home: "api/ipam/v1beta1", since: "v1.7"},
		{path: "exp/runtime/api/v1alpha1", home: "api/runtime/v1alpha1", since: "v1.7"},
		{path: "exp/runtime/catalog", home: "api/runtime/catalog", since: "v1.7"},
		{path: "exp/runtime/hooks/api/v1alpha1", home: "api/runtime/hooks/v1alpha1", since: "v1.7",
			without: []string{"inplace_types.go", "upgrade_types.go"}},

		{path: "api/bootstrap/kubeadm/v1beta1", home: "api/bootstrap/v1beta1", since: "v1.11"},
		{path: "api/bootstrap/kubeadm/v1beta2", home: "api/bootstrap/v1beta2", since: "v1.11"},
		{path: "api/controlplane/kubeadm/v1beta1", home: "api/controlplane/v1beta1", since: "v1.11"},
		{path: "api/controlplane/kubeadm/v1beta2", home: "api/controlplane/v1beta2", since: "v1.11"},
	}
}

// Write writes all packages below root, and returns the paths, relative to it, of the files that changed.
func Write(root string) ([]string, error) {
	homes, err := load(root)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, a := range all() {
		home := homes[module+a.home]
		if home == nil {
			return changed, fmt.Errorf("package %s, of which %s is an alias, does not exist", a.home, a.path)
		}
		path := filepath.Join(a.path, file)
		content, err := a.source(filepath.Join(root, a.path), home)
		if err != nil {
			return changed, fmt.Errorf("generate %s: %w", path, err)
		}
		if present, err := os.ReadFile(filepath.Join(root, path)); err == nil && bytes.Equal(present, content) {
			continue
		}
		if err := os.MkdirAll(filepath.Join(root, a.path), 0o755); err != nil {
			return changed, fmt.Errorf("create the directory of %s: %w", path, err)
		}
		if err := os.WriteFile(filepath.Join(root, path), content, 0o644); err != nil {
			return changed, fmt.Errorf("write %s: %w", path, err)
		}
		changed = append(changed, path)
	}
	return changed, nil
}

// load type-checks the homes of all aliases, by import path. Methods that are generated do not matter: errors of types are ignored.
func load(root string) (map[string]*packages.Package, error) {
	var patterns []string
	for _, a := range all() {
		patterns = append(patterns, "./"+a.home)
	}
	slices.Sort(patterns)
	mode := packages.NeedName | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: root}, slices.Compact(patterns)...)
	if err != nil {
		return nil, fmt.Errorf("load packages: %w", err)
	}
	out := map[string]*packages.Package{}
	for _, p := range loaded {
		for _, problem := range p.Errors {
			if problem.Kind != packages.TypeError {
				return nil, fmt.Errorf("load package %s: %w", p.PkgPath, problem)
			}
		}
		out[p.PkgPath] = p
	}
	return out, nil
}

// source returns the content of the file of an alias, in the directory dir. Names that other files of the directory declare are left out.
func (a alias) source(dir string, home *packages.Package) ([]byte, error) {
	declared, documented, err := inspect(dir)
	if err != nil {
		return nil, err
	}
	w := &writer{imports: map[string]string{module + a.home: "home"}}
	for _, name := range home.Types.Scope().Names() {
		o := home.Types.Scope().Lookup(name)
		in := filepath.Base(home.Fset.Position(o.Pos()).Filename)
		if !declared[name] && strings.HasPrefix(name, a.prefix) && !slices.Contains(a.without, in) {
			w.add(o)
		}
	}
	if w.empty() {
		return nil, fmt.Errorf("package %s has nothing to alias", a.home)
	}
	var out bytes.Buffer
	out.WriteString("// Code generated by hack/aliases. DO NOT EDIT.\n\n")
	if !documented {
		fmt.Fprintf(&out, "// Package %s has the API of package %s, under the import path that %s has it at. All names are aliases.\n",
			home.Name, a.home, a.since)
	}
	fmt.Fprintf(&out, "package %s\n\n", home.Name)
	w.write(&out)
	content, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("format: %w", err)
	}
	return content, nil
}

// inspect returns the names that the files of a directory declare, and whether one of them documents the package. Generated files count
// as well, except aliases.
func inspect(dir string) (declared map[string]bool, documented bool, err error) {
	declared = map[string]bool{}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	for _, e := range entries {
		if name := e.Name(); !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name == file {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, false, err
		}
		documented = documented || parsed.Doc != nil
		for _, d := range parsed.Decls {
			declare(declared, d)
		}
	}
	return declared, documented, nil
}

// declare adds the names of a declaration.
func declare(names map[string]bool, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names[d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names[spec.Name.Name] = true
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					names[n.Name] = true
				}
			}
		}
	}
}
