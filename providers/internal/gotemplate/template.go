package gotemplate

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"text/template"
	"text/template/parse"

	"sigs.k8s.io/cluster-api/sdk/condition"
)

const (
	// maxSource is the maximum length of a template, in bytes.
	maxSource = 256 << 10
	// maxActions is the maximum number of actions in a template.
	maxActions = 10_000
	// maxCallDepth is the maximum depth of calls between templates.
	maxCallDepth = 100
	// maxError is the maximum length of an error, in bytes: errors are written into conditions.
	maxError = 1 << 10
)

// Options configure a Parser and its templates.
type Options struct {
	// Name is the template's name in errors.
	Name string
	// Sprig adds the deterministic functions of Sprig.
	Sprig bool
	// Functions are more functions. They must be deterministic, and their results at most a few times as large as their arguments.
	Functions template.FuncMap
	// Strict makes references to undefined variables errors. Otherwise they render as "<no value>", and are false.
	Strict bool
	// Output is the maximum output of an execution, in bytes.
	Output int
	// Work is the budget of an execution, in units of Budget.
	Work int64
}

// Parser parses templates. It is immutable and can be reused.
type Parser struct {
	options Options
	known   map[string]function
	root    *template.Template
}

// NewParser returns a Parser.
func NewParser(o Options) *Parser {
	all, expensive := functions(o), predictions()
	known := make(map[string]function, len(all))
	for name, f := range all {
		known[name] = function{value: reflect.ValueOf(f), predict: expensive[name]}
	}
	return &Parser{options: o, known: known, root: template.New(o.Name).Funcs(all)}
}

// Template is a parsed template. It is immutable and safe for concurrent use.
type Template struct {
	options Options
	main    string
	trees   map[string]*parse.Tree
	// used are the functions that it calls.
	used map[string]function
}

// Parse parses a template.
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

// Execute renders the template with data, which must consist of maps, lists and scalars. Work is deducted from the shared
// budget, too, which may be nil.
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
	out := &limitedWriter{limit: t.options.Output}
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

// shorten truncates an error, because templates and their authors determine its length.
func shorten(err error) error {
	if text := err.Error(); len(text) > maxError {
		return errors.New(condition.Truncate(text, maxError))
	}
	return err
}
