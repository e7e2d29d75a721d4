package messages

import (
	"cmp"
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/types/typeutil"
)

// Message is a text and its use.
type Message struct {
	// Kind is error, condition, event, wait, log, invalid (an error about a field), warning, help, flag or print.
	Kind string
	// Text is a message or its format. Parts that are only known at run time are shown as "…".
	Text string
}

// collector finds the messages of packages that were loaded together.
type collector struct {
	sinks  map[string]sink
	fields map[string]string
	flow   flow
	found  map[Message]bool
}

// Collect returns the messages of every package by its import path, sorted.
func Collect(pkgs []*packages.Package) map[string][]Message {
	c := &collector{sinks: functions(), fields: fields(), flow: newFlow(pkgs)}
	// A function may pass a message on to another function that does so.
	for known := -1; known != len(c.sinks); {
		known = len(c.sinks)
		for _, p := range pkgs {
			for _, f := range p.Syntax {
				c.passedOn(p.TypesInfo, f)
			}
		}
	}
	out := map[string][]Message{}
	for _, p := range pkgs {
		c.found = map[Message]bool{}
		for _, f := range p.Syntax {
			ast.Inspect(f, func(n ast.Node) bool {
				c.visit(p.TypesInfo, n)
				return true
			})
		}
		messages := make([]Message, 0, len(c.found))
		for m := range c.found {
			messages = append(messages, m)
		}
		slices.SortFunc(messages, func(a, b Message) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
		})
		out[p.PkgPath] = messages
	}
	return out
}

// passedOn adds the functions of a file that pass a parameter on as a message.
func (c *collector) passedOn(info *types.Info, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		for _, m := range c.arguments(info, call) {
			c.pass(info, m.kind, m.expr)
			for _, format := range formatted(info, call) {
				c.pass(info, m.kind, format)
			}
		}
		return true
	})
}

// pass adds the functions whose parameters are part of a message.
func (c *collector) pass(info *types.Info, kind string, message ast.Expr) {
	for _, v := range c.flow.parameters(info, message) {
		owner := c.flow.owner[v]
		if _, known := c.sinks[owner.name]; !known && owner.name != "" {
			c.sinks[owner.name] = sink{kind: kind, arg: owner.index, all: owner.variadic}
		}
	}
}

// formatted returns the formats of the messages that are formatted within the arguments of a call.
func formatted(info *types.Info, call *ast.CallExpr) []ast.Expr {
	var out []ast.Expr
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			if inner, ok := n.(*ast.CallExpr); ok && callee(info, inner) == "fmt.Sprintf" && len(inner.Args) > 0 {
				out = append(out, inner.Args[0])
			}
			return true
		})
	}
	return out
}

// argument is an expression that is used as a message.
type argument struct {
	kind string
	expr ast.Expr
}

// arguments returns the messages among the arguments of a call.
func (c *collector) arguments(info *types.Info, call *ast.CallExpr) []argument {
	name := callee(info, call)
	s, ok := c.sinks[name]
	if !ok || isBuilder(info, call) {
		return nil
	}
	first := s.arg
	if first < 0 {
		first += len(call.Args)
	}
	var out []argument
	for i := first; i >= 0 && i < len(call.Args); i++ {
		out = append(out, argument{s.kind, call.Args[i]})
		if !s.all {
			break
		}
	}
	return out
}

// visit collects the messages of n, without those of its children.
func (c *collector) visit(info *types.Info, n ast.Node) {
	switch n := n.(type) {
	case *ast.CallExpr:
		for _, m := range c.arguments(info, n) {
			c.add(info, m.kind, m.expr)
		}
	case *ast.CompositeLit:
		c.literal(info, n)
	case *ast.FuncDecl:
		if n.Recv != nil && n.Name.Name == "Error" && n.Body != nil && n.Type.Params.NumFields() == 0 {
			for _, e := range returned(n.Body, 0) {
				c.add(info, kindError, e)
			}
		}
	}
}

// literal collects the messages in the fields of a struct, and warnings of admission.
func (c *collector) literal(info *types.Info, lit *ast.CompositeLit) {
	named := typeName(info.TypeOf(lit))
	for _, element := range lit.Elts {
		if named == warnings {
			c.add(info, kindWarning, element)
		}
		if field, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := field.Key.(*ast.Ident); ok && c.fields[named+"."+key.Name] != "" {
				c.add(info, c.fields[named+"."+key.Name], field.Value)
			}
		}
	}
}

// add collects the possible values of an expression that have words.
func (c *collector) add(info *types.Info, kind string, e ast.Expr) {
	for _, text := range c.flow.texts(info, e) {
		if hasWords(text) {
			c.found[Message{kind, text}] = true
		}
	}
}

// hasWords reports whether a text has words besides formatting verbs and terminal escape sequences.
func hasWords(text string) bool {
	for word := range strings.FieldsSeq(text) {
		if i := strings.IndexAny(word, "%\x1b"); i >= 0 {
			word = word[:i]
		}
		if strings.IndexFunc(word, unicode.IsLetter) >= 0 {
			return true
		}
	}
	return false
}

// isBuilder reports whether a call writes to a buffer, whose content may never be printed.
func isBuilder(info *types.Info, call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return false
	}
	switch typeName(info.TypeOf(call.Args[0])) {
	case "strings.Builder", "bytes.Buffer", "hash.Hash":
		return true
	}
	return false
}

// callee returns the name of the called function, as in functions; "" if it is unknown.
func callee(info *types.Info, call *ast.CallExpr) string {
	return nameOf(typeutil.Callee(info, call))
}

// nameOf returns the name of a function, a method, or a variable with a function.
func nameOf(o types.Object) string {
	switch o := o.(type) {
	case *types.Func:
		if o.Pkg() == nil {
			return ""
		}
		if recv := o.Signature().Recv(); recv != nil {
			return typeName(recv.Type()) + "." + o.Name()
		}
		return o.Pkg().Path() + "." + o.Name()
	case *types.Var:
		return localName(o)
	}
	return ""
}

// typeName returns the name of a type, or of the type that it points to, with its path.
func typeName(t types.Type) string {
	if t == nil {
		return ""
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return ""
	}
	return n.Obj().Pkg().Path() + "." + n.Obj().Name()
}
