// Package messages collects the messages that users see: errors, condition messages, events, log lines, waits of steps, help
// texts and printed lines. They are written to docs/messages, one file per program, so that they can be read together and a
// change of wording shows in a diff.
//
// Messages are found in the source: the constant strings that reach the functions and fields of table.go, directly or through
// variables, fields, lists, formats, conversions and the parameters and results of functions. What is not followed: methods of
// interfaces, and functions that are passed as arguments or kept in fields, unless table.go has them. Only packages of this repository are searched. Of values that are
// inserted into a message, those of one word are names, and are not collected.
package messages

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const (
	// prefix of the import paths of this repository.
	prefix = "sigs.k8s.io/cluster-api/"
	// folder of the results, below the root.
	folder = "docs/messages"
	// shared is the name for messages of packages that several programs link.
	shared = "shared"
)

// program is a command whose messages are collected.
type program struct {
	name string
	// module is the directory, below the root, from which pkg is resolved.
	module string
	pkg    string
	// rest limits the program's file to packages that no other program links.
	rest bool
}

// programs lists the commands that are released: those of the root module, then the one that links most of them.
func programs(root string) ([]program, error) {
	commands, err := os.ReadDir(filepath.Join(root, "cmd"))
	if err != nil {
		return nil, err
	}
	var all []program
	for _, c := range commands {
		all = append(all, program{name: c.Name(), module: ".", pkg: "./cmd/" + c.Name()})
	}
	return append(all, program{name: "capi", module: "standalone", pkg: "./cmd/capi", rest: true}), nil
}

// Write writes the messages of every program, and returns the paths, relative to root, of the files that changed.
func Write(root string) ([]string, error) {
	released, err := programs(root)
	if err != nil {
		return nil, err
	}
	home := map[string]string{}
	collected := map[string][]Message{}
	for _, p := range released {
		pkgs, err := load(filepath.Join(root, p.module), p.pkg)
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", p.name, err)
		}
		for path, messages := range Collect(pkgs) {
			switch at := home[path]; {
			case at == "":
				home[path] = p.name
			case !p.rest:
				home[path] = shared
			}
			collected[path] = union(collected[path], messages) // Each program only uses some functions of a package.
		}
	}
	files := map[string][]byte{shared: []byte("# Messages of packages that several programs link. Written by make generate.\n")}
	for _, p := range released {
		files[p.name] = fmt.Appendf(nil, "# Messages of %s; see shared.txt for more. Written by make generate.\n", p.name)
	}
	for _, path := range slices.Sorted(keys(collected)) {
		files[home[path]] = append(files[home[path]], render(path, collected[path])...)
	}
	return store(root, files)
}

// union returns the messages of both lists, sorted.
func union(a, b []Message) []Message {
	all := slices.Concat(a, b)
	slices.SortFunc(all, compare)
	return slices.Compact(all)
}

// keys returns an iterator over the keys of m.
func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// load type-checks the packages of this repository that pkg links. Of other packages, it only reads exported types.
func load(dir, pkg string) ([]*packages.Package, error) {
	listed, err := packages.Load(&packages.Config{Dir: dir, Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps}, pkg)
	if err != nil {
		return nil, err
	}
	var own []string
	packages.Visit(listed, nil, func(p *packages.Package) {
		if strings.HasPrefix(p.PkgPath, prefix) {
			own = append(own, p.PkgPath)
		}
	})
	slices.Sort(own)
	return check(dir, own...)
}

// check type-checks the packages that patterns select.
func check(dir string, patterns ...string) ([]*packages.Package, error) {
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
		packages.NeedImports
	pkgs, err := packages.Load(&packages.Config{Dir: dir, Mode: mode}, patterns...)
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, p := range pkgs {
		for _, e := range p.Errors {
			failures = append(failures, e)
		}
	}
	return pkgs, errors.Join(failures...)
}

// render writes the messages of one package: one line each, and further lines of a message below it.
func render(path string, messages []Message) []byte {
	if len(messages) == 0 {
		return nil
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "\n%s\n", strings.TrimPrefix(path, prefix))
	for _, m := range messages {
		text := strings.ReplaceAll(strings.TrimRight(m.Text, "\n"), "\n", "\n"+strings.Repeat(" ", 12))
		for line := range strings.SplitSeq(fmt.Sprintf("  %-9s %s", m.Kind, text), "\n") {
			fmt.Fprintln(&out, strings.TrimRight(line, " \t"))
		}
	}
	return out.Bytes()
}

// store writes the files that differ, and removes those of programs that no longer exist.
func store(root string, files map[string][]byte) ([]string, error) {
	var changed []string
	if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(keys(files)) {
		path := filepath.Join(folder, name+".txt")
		before, err := os.ReadFile(filepath.Join(root, path))
		if err == nil && bytes.Equal(before, files[name]) {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, path), files[name], 0o600); err != nil {
			return changed, err
		}
		changed = append(changed, path)
	}
	there, err := filepath.Glob(filepath.Join(root, folder, "*.txt"))
	if err != nil {
		return changed, err
	}
	for _, path := range there {
		if _, ok := files[strings.TrimSuffix(filepath.Base(path), ".txt")]; !ok {
			if err := os.Remove(path); err != nil {
				return changed, err
			}
			changed = append(changed, filepath.Join(folder, filepath.Base(path)))
		}
	}
	return changed, nil
}
