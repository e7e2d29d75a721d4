// Package template replaces ${VARIABLES} in the YAML files of providers and users.
//
// The language is that of the drone/envsubst library; this package adds spaces within the braces, the list of variables
// with their defaults, and an error with all variables that have no value. Callers provide the values.
package template

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/drone/envsubst/v2"
	"github.com/drone/envsubst/v2/parse"
)

// Lookup returns a variable's value and whether it is set; an empty value counts as set.
type Lookup func(name string) (value string, set bool)

// Variable is a variable of a template.
type Variable struct {
	Name string
	// Default is the default at the first occurrence; nil if it has none, which makes the variable required.
	Default *string
}

// MissingError is returned if required variables have no value.
type MissingError struct {
	// Names are sorted.
	Names []string
}

// Error lists the variables and how to set them.
func (e *MissingError) Error() string {
	word := "variables"
	if len(e.Names) == 1 {
		word = "variable"
	}
	return fmt.Sprintf("no value for required %s %s: set %s in the environment or in the clusterctl configuration file",
		word, strings.Join(e.Names, ", "), map[bool]string{true: "it", false: "them"}[len(e.Names) == 1])
}

// Template is a parsed text. It is immutable.
type Template struct {
	text string
	root parse.Node
}

// spacedBraces matches ${ NAME }, which the library does not support.
var spacedBraces = regexp.MustCompile(`\$\{\s*([A-Za-z0-9_$]+)\s*\}`)

// Parse parses a template. The error of a malformed expression has its line.
func Parse(raw []byte) (*Template, error) {
	if bytes.IndexByte(raw, 0) >= 0 { // The library takes it for the end of the text.
		return nil, errors.New("it has a NUL character in it: it is no text, or not in UTF-8")
	}
	text := spacedBraces.ReplaceAllString(string(raw), "$${$1}")
	tree, err := parse.Parse(text)
	if err != nil {
		return nil, locate(text, err)
	}
	return &Template{text: text, root: tree.Root}, nil
}

// locate adds the first line that does not parse by itself; multi-line expressions are not located.
func locate(text string, err error) error {
	for i, line := range strings.Split(text, "\n") {
		if _, lineErr := parse.Parse(line); lineErr != nil {
			return fmt.Errorf("line %d: %q: %w: check the ${...} expression, or use $${...} to keep it unchanged",
				i+1, strings.TrimSpace(line), lineErr)
		}
	}
	return fmt.Errorf("multi-line ${...} expression: %w", err)
}

// Variables returns the template's variables sorted by name. The first occurrence of a variable determines its default.
func (t *Template) Variables() []Variable {
	seen := map[string]bool{}
	var list []Variable
	walk(t.root, func(n *parse.FuncNode) bool {
		if !seen[n.Param] {
			seen[n.Param] = true
			list = append(list, Variable{Name: n.Param, Default: defaultOf(n)})
		}
		return true
	})
	slices.SortFunc(list, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Execute returns the text with every expression replaced, or a *MissingError. A variable whose first occurrence has a
// default is optional; so are variables that only occur in the default of one that has a value.
func (t *Template) Execute(get Lookup) ([]byte, error) {
	if names := t.missing(get); len(names) > 0 {
		return nil, &MissingError{Names: names}
	}
	out, err := t.evaluate(func(name string) string {
		value, _ := get(name)
		return value
	})
	if err != nil {
		return nil, fmt.Errorf("cannot substitute variables: %w", err)
	}
	return []byte(out), nil
}

// evaluate makes errors of the panics that the library answers some expressions with, such as a part beyond the end of a value.
func (t *Template) evaluate(get func(string) string) (out string, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New(
				"an expression cannot be applied to the value of its variable: check the positions and lengths in ${NAME:position:length}")
		}
	}()
	return envsubst.Eval(t.text, get)
}

func (t *Template) missing(get Lookup) []string {
	seen := map[string]bool{}
	var names []string
	walk(t.root, func(n *parse.FuncNode) bool {
		value, set := get(n.Param)
		if !seen[n.Param] {
			seen[n.Param] = true
			if defaultOf(n) == nil && !set {
				names = append(names, n.Param)
			}
		}
		return value == "" || defaultOf(n) == nil
	})
	slices.Sort(names)
	return names
}

// walk calls visit for every expression in the order of the text; expressions within arguments follow the one they belong
// to when visit returned true.
func walk(node parse.Node, visit func(*parse.FuncNode) bool) {
	switch n := node.(type) {
	case *parse.ListNode:
		for _, child := range n.Nodes {
			walk(child, visit)
		}
	case *parse.FuncNode:
		if !visit(n) {
			return
		}
		for _, arg := range n.Args {
			walk(arg, visit)
		}
	}
}

func defaultOf(n *parse.FuncNode) *string {
	switch n.Name {
	case "=", ":=", ":-", ":?", ":+":
		value := source(n.Args)
		return &value
	default:
		return nil
	}
}

// source returns the source text of arguments.
func source(args []parse.Node) string {
	var b strings.Builder
	for _, arg := range args {
		switch n := arg.(type) {
		case *parse.TextNode:
			b.WriteString(n.Value)
		case *parse.FuncNode:
			b.WriteString("${" + n.Param + n.Name + source(n.Args) + "}")
		}
	}
	return b.String()
}
