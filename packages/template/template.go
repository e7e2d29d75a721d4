// Package template replaces ${VARIABLES} in the YAML files of providers and users.
//
// The language is that of the drone/envsubst library; this package adds spaces within the braces, the list of variables
// with their defaults, an error with all variables that have no value, and limits, because templates are written by others.
// Callers provide the values.
//
// Whether a variable is required is decided by one rule: an expression without an argument, such as ${A}, ${A^^} or ${#A},
// requires its variable. One with an argument does not, whatever the argument is for: ${A:=x}, ${A/x/y}, ${A#x}, ${A:1}. Of
// several expressions of a variable, the first one decides; those in arguments of others require nothing.
package template

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drone/envsubst/v2"
	"github.com/drone/envsubst/v2/parse"

	"sigs.k8s.io/cluster-api/packages"
)

// Lookup returns a variable's value and whether it is set; an empty value counts as set.
type Lookup func(name string) (value string, set bool)

// Variable is a variable of a template.
type Variable struct {
	Name string
	// Default is what stands for the variable at its first occurrence if it is not set: a default, or nothing, if the expression has
	// arguments of another kind. It is nil for required variables.
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
	pieces []piece
}

// Parse parses a template. The error of a malformed expression has its line.
func Parse(raw []byte) (*Template, error) {
	if bytes.IndexByte(raw, 0) >= 0 { // The library takes it for the end of the text.
		return nil, errors.New("it has a NUL character in it: it is no text, or not in UTF-8")
	}
	if len(raw) > packages.MaxManifests {
		return nil, packages.TooLarge("the template", len(raw), packages.MaxManifests)
	}
	pieces, err := split(string(raw))
	if err != nil {
		return nil, err
	}
	return &Template{pieces: pieces}, nil
}

// Variables returns the template's variables sorted by name.
func (t *Template) Variables() []Variable {
	seen := map[string]bool{}
	var list []Variable
	add := func(n *parse.FuncNode, fallback *string) {
		if !seen[n.Param] {
			seen[n.Param] = true
			list = append(list, Variable{Name: n.Param, Default: fallback})
		}
	}
	for _, p := range t.pieces {
		walk(p.root, false, func(n *parse.FuncNode) { add(n, defaultOf(n)) })
	}
	for _, p := range t.pieces {
		walk(p.root, true, func(n *parse.FuncNode) {
			fallback := defaultOf(n)
			if fallback == nil {
				fallback = new(string)
			}
			add(n, fallback)
		})
	}
	slices.SortFunc(list, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Execute returns the text with every expression replaced, or a *MissingError.
func (t *Template) Execute(get Lookup) ([]byte, error) {
	var missing []string
	for _, v := range t.Variables() {
		if _, set := get(v.Name); v.Default == nil && !set {
			missing = append(missing, v.Name)
		}
	}
	if len(missing) > 0 {
		return nil, &MissingError{Names: missing}
	}
	value := func(name string) string {
		text, _ := get(name)
		return text
	}
	var out bytes.Buffer
	work := 0.0
	for _, p := range t.pieces {
		c := costOf(p.root, value)
		if p.root == nil {
			c.size = float64(len(p.text))
		}
		if work += c.work; work > maxWork {
			return nil, errors.New("cannot substitute variables: the patterns in its expressions are too long for the values of their variables")
		}
		if float64(out.Len())+c.size > packages.MaxManifests {
			return nil, fmt.Errorf("cannot substitute variables: the result could have more than %d MiB", packages.MaxManifests>>20)
		}
		text, err := p.evaluate(value)
		if err != nil {
			return nil, fmt.Errorf("cannot substitute variables: %w", err)
		}
		out.WriteString(text)
	}
	return out.Bytes(), nil
}

// evaluate makes errors of the panics that the library answers some expressions with, such as a part beyond the end of a value.
func (p *piece) evaluate(get func(string) string) (out string, err error) {
	if p.root == nil {
		return p.text, nil
	}
	defer func() {
		if recover() != nil {
			err = errors.New(
				"an expression cannot be applied to the value of its variable: check the positions and lengths in ${NAME:position:length}")
		}
	}()
	return envsubst.Eval(p.text, get)
}

// walk calls visit for every expression in the order of the text. Those in arguments follow the one they belong to, if nested is set.
func walk(node parse.Node, nested bool, visit func(*parse.FuncNode)) {
	switch n := node.(type) {
	case *parse.ListNode:
		for _, child := range n.Nodes {
			walk(child, nested, visit)
		}
	case *parse.FuncNode:
		visit(n)
		for _, arg := range n.Args {
			if nested {
				walk(arg, nested, visit)
			}
		}
	}
}

// defaultOf returns what stands for an unset variable in an expression, nil if it is required.
func defaultOf(n *parse.FuncNode) *string {
	value := ""
	switch n.Name {
	case "=", ":=", ":-", ":?", ":+":
		value = source(n.Args)
	default:
		if len(n.Args) == 0 {
			return nil
		}
	}
	return &value
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
