package gotemplate

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"text/template"
	"text/template/parse"
)

const (
	// maxSource is how long a template may be, in bytes.
	maxSource = 256 << 10
	// maxActions is how many actions a template may have.
	maxActions = 10_000
	// maxCalls is how deep templates may call each other, or themselves.
	maxCalls = 100
	// maxError is how much of an error is kept: it ends up in conditions.
	maxError = 1 << 10
)

// Options say what templates may do.
type Options struct {
	// Name is what errors call the template.
	Name string
	// Sprig says whether templates have the functions of Sprig, those whose result varies left out.
	Sprig bool
	// Strict makes a reference to a variable that is not there an error. It is "<no value>" otherwise, and false for if.
	Strict bool
	// Output is how much an execution may render, in bytes.
	Output int
	// Work is the budget of an execution, in units of a Budget.
	Work int64
}

// Parser parses templates. It is immutable: use it for many.
type Parser struct {
	options Options
	known   map[string]function
	root    *template.Template
}

// NewParser returns a Parser.
func NewParser(o Options) *Parser {
	all, expensive := functions(o.Sprig), predictions()
	known := make(map[string]function, len(all))
	for name, f := range all {
		known[name] = function{value: reflect.ValueOf(f), predict: expensive[name]}
	}
	return &Parser{options: o, known: known, root: template.New(o.Name).Funcs(all)}
}

// Template is a parsed template. It is immutable and may be executed concurrently.
type Template struct {
	options Options
	main    string
	trees   map[string]*parse.Tree
	// used are the functions that it calls.
	used map[string]function
}

// Parse reads a template.
func (p *Parser) Parse(source string) (*Template, error) {
	if len(source) > maxSource {
		return nil, &LimitError{What: fmt.Sprintf("the template has %d bytes: at most %d are allowed", len(source), maxSource)}
	}
	if n := strings.Count(source, "{{"); n > maxActions {
		return nil, &LimitError{What: fmt.Sprintf("the template has %d actions: at most %d are allowed", n, maxActions)}
	}
	clone, err := p.root.Clone()
	if err != nil {
		return nil, err
	}
	parsed, err := clone.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("not a valid Go template: %w", shorten(err))
	}
	t := &Template{options: p.options, main: parsed.Name(), trees: map[string]*parse.Tree{}, used: map[string]function{}}
	m := meter{known: p.known, used: t.used}
	for _, one := range parsed.Templates() {
		if one.Tree == nil || one.Root == nil {
			continue
		}
		t.trees[one.Name()] = one.Tree
		if err := m.template(one.Root); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Execute renders the template with data, which consists of maps, lists and plain values. Besides the budget of the
// execution it spends of the one that is shared, which may be nil.
func (t *Template) Execute(data any, shared *Budget) ([]byte, error) {
	e := &execution{budget: Budget{left: t.options.Work}}
	if shared != nil {
		e.budget.left = min(e.budget.left, shared.left)
	}
	before := e.budget.left
	root := template.New(t.main).Funcs(e.functions(t.used))
	if t.options.Strict {
		root.Option("missingkey=error")
	}
	for name, tree := range t.trees {
		if _, err := root.AddParseTree(name, tree); err != nil {
			return nil, err
		}
	}
	out := &limited{limit: t.options.Output}
	err := root.Execute(out, data)
	if shared != nil {
		shared.left -= before - e.budget.left
	}
	if err != nil {
		if limit, ok := errors.AsType[*LimitError](err); ok {
			return nil, limit
		}
		return nil, shorten(err)
	}
	return out.out, nil
}

// shorten keeps the beginning of an error that carries what a template or its author put into it.
func shorten(err error) error {
	if text := err.Error(); len(text) > maxError {
		return errors.New(strings.ToValidUTF8(text[:maxError], "") + "...")
	}
	return err
}
