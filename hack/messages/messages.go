// Package messages lists the texts that users see: errors, condition messages, events, log lines, waits of steps, descriptions
// of commands and flags. They are written to docs/messages, one file per component, so that they can be read together and a
// change of wording shows in a diff.
//
// It reads syntax only: every string literal with at least two words, with the kind of the call or field that it is an
// argument of (table.go), whatever package it is in. Parts of a text that are not literals are shown as "…".
package messages

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// folder of the results, below the root.
const folder = "docs/messages"

// unknown replaces parts of texts that are not literals.
const unknown = "…"

// Message is a text and its use.
type Message struct {
	// Kind is one of table.go.
	Kind string
	// Text is a message, or its format.
	Text string
}

// Write writes the texts of every component, and returns the paths, relative to root, of the files that changed.
func Write(root string) ([]string, error) {
	found, err := Collect(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for component, messages := range found {
		files[component+".txt"] = render(component, messages)
	}
	return store(filepath.Join(root, folder), files)
}

// Collect returns the texts in the Go files of every component, sorted.
func Collect(tree fs.FS) (map[string][]Message, error) {
	found := map[string]map[Message]bool{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped(name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || component(name) == "":
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(file) {
			return err
		}
		if found[component(name)] == nil {
			found[component(name)] = map[Message]bool{}
		}
		ast.Walk(visitor{kind: kindText, found: found[component(name)]}, file)
		return nil
	})
	out := map[string][]Message{}
	for component, messages := range found {
		out[component] = slices.SortedFunc(maps.Keys(messages), func(a, b Message) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
		})
	}
	return out, err
}

// skipped reports whether a directory has no texts of components: what the go command ignores, and what only tests use.
func skipped(name string) bool {
	base := path.Base(name)
	return name != "." && strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || strings.HasSuffix(base, "test") ||
		base == "testdata" || base == "testenv" || base == "testcluster" || base == "nodeimage"
}

// component returns the component of a file; "" if it has none.
func component(name string) string {
	parts := strings.Split(name, "/")
	switch parts[0] {
	case "providers":
		if parts[1] != "internal" {
			return parts[1]
		}
		return parts[0]
	case "api", "backup", "clusterctl", "docs", "exp", "packages", "sdk", "standalone":
		return parts[0]
	}
	return ""
}

// visitor collects the texts of a node and its children.
type visitor struct {
	kind  string
	found map[Message]bool
}

// Visit implements ast.Visitor.
func (v visitor) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return nil
	case *ast.Field: // Its tag is a literal.
		ast.Walk(v, n.Type)
		return nil
	case *ast.FuncLit:
		v.kind = kindText
	case *ast.CallExpr:
		v.kind = kindOfCall(n, v.kind)
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && fields[key.Name] != "" {
			v.kind = fields[key.Name]
		}
	case *ast.BasicLit:
		v.add(textOf(n))
	case *ast.BinaryExpr:
		if text := textOf(n); n.Op == token.ADD && strings.Trim(text, unknown) != "" {
			v.add(text)
			v.operands(n)
			return nil
		}
	}
	return v
}

// operands visits the operands of a concatenation that are not part of its text.
func (v visitor) operands(n *ast.BinaryExpr) {
	for _, operand := range []ast.Expr{n.X, n.Y} {
		if nested, ok := operand.(*ast.BinaryExpr); ok {
			v.operands(nested)
		} else if textOf(operand) == unknown {
			ast.Walk(v, operand)
		}
	}
}

// textOf returns the text of a literal or a concatenation.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value) // The parser has checked it.
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return strings.ReplaceAll(textOf(e.X)+textOf(e.Y), unknown+unknown, unknown)
		}
	}
	return unknown
}

// add adds a text if it is for people: two words, or a word and a verb of a format in a text with a known kind. Others are
// names, data and templates.
func (v visitor) add(text string) {
	parts := strings.Fields(text)
	words := 0
	for _, part := range parts {
		if part, _, _ = strings.Cut(part, "%"); strings.ContainsFunc(part, unicode.IsLetter) {
			words++
		}
	}
	known := v.kind != kindText
	if len(parts) < 2 || words == 0 || !known && (words < 2 || strings.ContainsAny(strings.TrimSuffix(text, "\n"), "\n{}\x1b")) {
		return
	}
	v.found[Message{v.kind, strings.TrimSpace(text)}] = true
}

// render writes the texts of a component: one line each, and further lines of a text below it.
func render(component string, messages []Message) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Texts of %s. Written by make generate.\n", component)
	for _, m := range messages {
		for i, line := range strings.Split(m.Text, "\n") {
			kind := m.Kind
			if i > 0 {
				kind = ""
			}
			fmt.Fprintln(&out, strings.TrimRight(fmt.Sprintf("%-9s %s", kind, line), " \t"))
		}
	}
	return out.Bytes()
}

// store writes the files that differ, removes those of components that no longer exist, and returns the names of both.
func store(dir string, files map[string][]byte) ([]string, error) {
	var changed []string
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	existing, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	for _, file := range existing {
		if name := filepath.Base(file); files[name] == nil {
			if err := os.Remove(file); err != nil {
				return changed, err
			}
			changed = append(changed, path.Join(folder, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		before, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil && bytes.Equal(before, files[name]) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o600); err != nil {
			return changed, err
		}
		changed = append(changed, path.Join(folder, name))
	}
	return changed, nil
}
