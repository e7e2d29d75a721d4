// Package generate derives files from the Go types of the API: deep copy methods, next to the types, and
// CustomResourceDefinitions, in the configuration of the component that owns the kind.
//
// Types and markers define the content. This package decides where files go, which labels they get, and makes the few
// corrections that markers cannot express. Output is deterministic.
package generate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/deepcopy"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
)

// source is a set of Go packages to derive files from.
type source struct {
	// pattern selects packages, as for the go command.
	pattern string
	// dir must exist, below the root, for the source to be read.
	dir string
}

// sources lists the packages with API types. Packages without markers are fine.
func sources() []source {
	return []source{
		{pattern: "./api/...", dir: "api"},
		{pattern: "./exp/runtime/hooks/api/...", dir: "exp/runtime/hooks/api"},
	}
}

// Run generates all files below root, and returns the paths, relative to root, of those that changed or were removed.
func Run(root string) ([]string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("resolve the repository root: %w", err)
	}
	out := artifacts{code: map[string]*bytes.Buffer{}, config: map[string]*bytes.Buffer{}}
	for _, s := range sources() {
		if _, err := os.Stat(filepath.Join(root, s.dir)); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := derive(root, s.pattern, out); err != nil {
			return nil, fmt.Errorf("derive from %s: %w", s.pattern, err)
		}
	}
	files := map[string][]byte{}
	for path, content := range out.code {
		files[path] = content.Bytes()
	}
	for name, content := range out.config {
		c, err := definitionOf(content.Bytes())
		if err != nil {
			return nil, fmt.Errorf("finish CustomResourceDefinition %s: %w", name, err)
		}
		if c == nil {
			continue
		}
		files[filepath.Join(root, c.dir, name)] = c.content
	}
	return sync(root, files)
}

// derive runs the generators over the packages that pattern selects. Definitions are raw: they have every version that has types.
func derive(moduleDir, pattern string, out artifacts) error {
	var objects genall.Generator = deepcopy.Generator{}
	var definitions genall.Generator = crd.Generator{}
	generators := genall.Generators{&objects, &definitions}
	runtime, err := generators.ForRootsWithConfig(&packages.Config{Dir: moduleDir}, pattern)
	if err != nil {
		return fmt.Errorf("load packages: %w", err)
	}
	var problems bytes.Buffer
	runtime.ErrorWriter = &problems
	runtime.OutputRules = genall.OutputRules{Default: out}
	if runtime.Run() {
		return fmt.Errorf("generators failed, see their messages above: %s", strings.TrimSpace(problems.String()))
	}
	return nil
}

// artifacts collects the output of generators, so that files are only written if everything succeeded.
type artifacts struct {
	// code by absolute path.
	code map[string]*bytes.Buffer
	// config by file name.
	config map[string]*bytes.Buffer
}

// Open opens a file for a generator: next to the sources of pkg, or, for a nil pkg, in the configuration.
func (a artifacts) Open(pkg *loader.Package, name string) (io.WriteCloser, error) {
	buffer := &bytes.Buffer{}
	if pkg == nil {
		a.config[name] = buffer
		return file{buffer}, nil
	}
	if len(pkg.GoFiles) == 0 {
		return nil, fmt.Errorf("package %s has no Go files to write %s next to", pkg.PkgPath, name)
	}
	a.code[filepath.Join(filepath.Dir(pkg.GoFiles[0]), name)] = buffer
	return file{buffer}, nil
}

// file is a buffer with a Close method.
type file struct{ *bytes.Buffer }

// Close does nothing.
func (file) Close() error { return nil }

// sync writes files whose content differs, removes definitions of kinds that no longer exist, and returns the changed
// paths.
func sync(root string, files map[string][]byte) ([]string, error) {
	var changed []string
	stale, err := staleDefinitions(root, files)
	if err != nil {
		return nil, err
	}
	for _, path := range stale {
		if err := os.Remove(path); err != nil {
			return changed, fmt.Errorf("remove the definition of a kind that no longer exists: %w", err)
		}
		changed = append(changed, relative(root, path))
	}
	for path, content := range files {
		present, err := os.ReadFile(path)
		if err == nil && bytes.Equal(present, content) {
			continue
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return changed, fmt.Errorf("compare with the existing file: %w", err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return changed, fmt.Errorf("create the directory of a generated file: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return changed, fmt.Errorf("write a generated file: %w", err)
		}
		changed = append(changed, relative(root, path))
	}
	sort.Strings(changed)
	return changed, nil
}

// staleDefinitions lists definitions on disk that are not in files. Only names of the form <group>_<plural>.yaml count,
// so that there can be other files in the same directories.
func staleDefinitions(root string, files map[string][]byte) ([]string, error) {
	dirs := map[string]bool{}
	for _, c := range components() {
		dirs[c.dir] = true
	}
	var stale []string
	for dir := range dirs {
		found, err := filepath.Glob(filepath.Join(root, dir, "*.x-k8s.io_*.yaml"))
		if err != nil {
			return nil, fmt.Errorf("list definitions in %s: %w", dir, err)
		}
		for _, path := range found {
			if _, ok := files[path]; !ok {
				stale = append(stale, path)
			}
		}
	}
	return stale, nil
}

// relative shortens path for messages; it falls back to the absolute path.
func relative(root, path string) string {
	short, err := filepath.Rel(root, path)
	if err != nil {
		return path
	}
	return short
}
