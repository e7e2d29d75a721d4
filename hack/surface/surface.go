// Package surface lists the exported API of a Go module, one declaration per line, so that changes show in a diff.
//
// What belongs here: reading and printing. What does not: deciding whether a change is compatible, which is for review.
package surface

import (
	"bytes"
	"errors"
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// File is the name of the list in the module's folder.
const File = "API.txt"

// Write writes the list of the module in dir, and reports whether it changed.
func Write(dir string) (changed bool, err error) {
	list, err := List(dir)
	if err != nil {
		return false, err
	}
	path := filepath.Join(dir, File)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	if bytes.Equal(before, list) {
		return false, nil
	}
	return true, os.WriteFile(path, list, 0o644)
}

// List returns the exported API of the module in dir, without internal packages.
func List(dir string) ([]byte, error) {
	loaded, err := packages.Load(&packages.Config{
		Dir: dir, Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps | packages.NeedModule,
	}, "./...")
	if err != nil {
		return nil, fmt.Errorf("load the packages of %s: %w", dir, err)
	}
	var lines []string
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("load %s: %w", p.PkgPath, p.Errors[0])
		}
		if p.Name != "main" && !strings.Contains(p.PkgPath+"/", "/internal/") {
			lines = append(lines, declarations(p.Types, strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, p.Module.Path), "/"))...)
		}
	}
	slices.Sort(lines)
	header := "# What this module exports. Written by make generate; README.md says what may change.\n"
	return []byte(header + strings.Join(lines, "\n") + "\n"), nil
}

// declarations returns the lines of a package, each prefixed with its folder.
func declarations(p *types.Package, folder string) []string {
	qualifier := func(other *types.Package) string {
		if other == p {
			return ""
		}
		return other.Name()
	}
	var lines []string
	add := func(declaration string) { lines = append(lines, folder+": "+declaration) }
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		named, isType := object.Type().(*types.Named)
		if _, declared := object.(*types.TypeName); !declared || !isType {
			add(types.ObjectString(object, qualifier))
			continue
		}
		add("type " + name + parameters(named, qualifier) + " " + shape(named, qualifier))
		lines = append(lines, members(named, folder, qualifier)...)
	}
	return lines
}

func parameters(named *types.Named, qualifier types.Qualifier) string {
	var all []string
	for p := range named.TypeParams().TypeParams() {
		all = append(all, types.TypeString(p, qualifier)+" "+types.TypeString(p.Constraint(), qualifier))
	}
	if len(all) == 0 {
		return ""
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// shape returns the underlying type. Fields of structs have their own lines.
func shape(named *types.Named, qualifier types.Qualifier) string {
	if _, ok := named.Underlying().(*types.Struct); ok {
		return "struct"
	}
	return types.TypeString(named.Underlying(), qualifier)
}

// members returns exported fields and methods, without those of embedded types.
func members(named *types.Named, folder string, qualifier types.Qualifier) []string {
	var lines []string
	name := folder + ": " + named.Obj().Name() + "."
	if fields, ok := named.Underlying().(*types.Struct); ok {
		for field := range fields.Fields() {
			if field.Exported() {
				lines = append(lines, name+field.Name()+" "+types.TypeString(field.Type(), qualifier))
			}
		}
	}
	for method := range named.Methods() {
		if method.Exported() {
			signature := strings.TrimPrefix(types.TypeString(method.Type(), qualifier), "func")
			lines = append(lines, name+method.Name()+signature)
		}
	}
	return lines
}
