// Package house checks the rules of this repository that golangci-lint does not have: the share of long functions, the length
// of Reconcile, package comments, also of packages that only have tests, nolint comments for linters that are not enabled, and
// imports against the order of the layers, words and small packages, whose number must not grow; and in go.mod files, that all
// modules require the same versions of dependencies, so that a generator reads the types that a program is built with.
//
// It reads syntax only, so it needs neither a build nor dependencies. All other rules are in .golangci.yml.
package house

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Limits, in lines unless noted.
const (
	// LongFunction is the length above which a function counts as long.
	LongFunction = 50
	// MaxLongPercent is the maximum share of long functions, tests not counted.
	MaxLongPercent = 5
	// MaxReconcile is the maximum length of a method named Reconcile.
	MaxReconcile = 60
)

// Finding is a violation of a rule.
type Finding struct {
	// File is the path below the checked root; empty for the repository as a whole.
	File string
	// Line is the line in File.
	Line int
	// Message is what is wrong and what to do.
	Message string
}

// String formats the finding like a compiler error, so that editors can jump to it.
func (f Finding) String() string {
	if f.File == "" {
		return f.Message
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message)
}

// function is a function for the rule about the share of long functions.
type function struct {
	file  string
	line  int
	name  string
	lines int
}

// checker collects findings.
type checker struct {
	files     *token.FileSet
	findings  []Finding
	functions []function
	packages  map[string]*packageState
	linters   []string
	// ratchets has the places of violations that are counted.
	ratchets map[violation][]string
	// sizes has the lines of the files of each package that is not a command.
	sizes map[string][]int
}

// packageState is the state of a package in a directory.
type packageState struct {
	file       string
	line       int
	documented bool
}

// Check checks every Go file below the root of tree, except generated files and directories that the go command ignores.
// It only fails if a file cannot be read or parsed. If the root has a Config, nolint comments are checked against it.
func Check(tree fs.FS) ([]Finding, error) {
	c, err := check(tree)
	if err != nil {
		return nil, err
	}
	if err := c.compareRatchets(tree); err != nil {
		return nil, err
	}
	slices.SortFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message))
	})
	return c.findings, nil
}

// check checks everything but the numbers of Ratchet.
func check(tree fs.FS) (*checker, error) {
	enabled, err := linters(tree)
	if err != nil {
		return nil, err
	}
	c := &checker{
		files:    token.NewFileSet(),
		packages: map[string]*packageState{},
		linters:  enabled,
		ratchets: map[violation][]string{},
		sizes:    map[string][]int{},
	}
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if ignored(entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return c.file(name, source)
	})
	if err != nil {
		return nil, fmt.Errorf("check Go files: %w", err)
	}
	c.undocumentedPackages()
	c.share()
	c.smallPackages()
	return c, nil
}

// ignored reports whether the go command ignores directories of this name.
func ignored(name string) bool {
	if name == "." {
		return false
	}
	return name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// file checks one file.
func (c *checker) file(name string, source []byte) error {
	parsed, err := parser.ParseFile(c.files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	c.packageOf(name, parsed)
	if ast.IsGenerated(parsed) {
		return nil
	}
	if c.linters != nil {
		c.directives(parsed)
	}
	c.imports(name, parsed)
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	if parsed.Name.Name != "main" {
		c.sizes[path.Dir(name)] = append(c.sizes[path.Dir(name)], bytes.Count(source, []byte("\n")))
	}
	c.wording(name, parsed)
	for _, decl := range parsed.Decls {
		if d, ok := decl.(*ast.FuncDecl); ok {
			c.function(d)
		}
	}
	return nil
}

// packageOf records the package of a file, and whether it has a comment there.
func (c *checker) packageOf(name string, f *ast.File) {
	// External test packages need no comment.
	id := path.Dir(name) + " " + strings.TrimSuffix(f.Name.Name, "_test")
	state, known := c.packages[id]
	if !known {
		position := c.files.Position(f.Package)
		state = &packageState{file: position.Filename, line: position.Line}
		c.packages[id] = state
	}
	state.documented = state.documented || strings.TrimSpace(f.Doc.Text()) != ""
}

// function records a function for the share of long ones, and checks the length of Reconcile.
func (c *checker) function(d *ast.FuncDecl) {
	start, end := c.files.Position(d.Pos()), c.files.Position(d.End())
	lines := end.Line - start.Line + 1
	c.functions = append(c.functions, function{file: start.Filename, line: start.Line, name: d.Name.Name, lines: lines})
	if d.Recv != nil && d.Name.Name == "Reconcile" && lines > MaxReconcile {
		c.reportf(d.Pos(), "method Reconcile has %d lines, more than %d: it should read like a table of contents", lines, MaxReconcile)
	}
}

// undocumentedPackages reports packages without a package comment.
func (c *checker) undocumentedPackages() {
	for _, state := range c.packages {
		if !state.documented {
			c.findings = append(c.findings, Finding{File: state.file, Line: state.line,
				Message: "package has no comment: say what belongs here and what does not"})
		}
	}
}

// share reports all long functions if there are too many.
func (c *checker) share() {
	var long []function
	for _, f := range c.functions {
		if f.lines > LongFunction {
			long = append(long, f)
		}
	}
	if 100*len(long) <= MaxLongPercent*len(c.functions) {
		return
	}
	c.findings = append(c.findings,
		Finding{Message: fmt.Sprintf("%d of %d functions have more than %d lines, above the limit of %d %%: split some of those reported",
			len(long), len(c.functions), LongFunction, MaxLongPercent)})
	for _, f := range long {
		c.findings = append(c.findings, Finding{File: f.file, Line: f.line,
			Message: fmt.Sprintf("function %s has %d lines, and too many functions have more than %d", f.name, f.lines, LongFunction)})
	}
}

// reportf adds a finding at a position.
func (c *checker) reportf(at token.Pos, format string, args ...any) {
	position := c.files.Position(at)
	c.findings = append(c.findings, Finding{File: position.Filename, Line: position.Line, Message: fmt.Sprintf(format, args...)})
}
