package messages

import (
	"cmp"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/types/typeutil"
)

// Message is a text and its use.
type Message struct {
	// Kind is error, condition, event, wait, log, invalid (an error about a field), warning, help, flag, metric or print.
	Kind string
	// Text is a message or its format. Parts that are only known at run time are shown as "…".
	Text string
}

// collector finds the messages of packages that were loaded together.
type collector struct {
	sinks  map[string]sink
	fields map[string]string
	flow   flow
	// messages has the messages of packages, and whether each is only a part of another one.
	messages map[string]map[Message]bool
	traced   map[traced]bool
}

// Collect returns the messages of every package by its import path, sorted.
func Collect(pkgs []*packages.Package) map[string][]Message {
	c := &collector{
		sinks: functions(), fields: fields(), flow: newFlow(pkgs), messages: map[string]map[Message]bool{}, traced: map[traced]bool{},
	}
	for _, p := range pkgs {
		c.messages[p.PkgPath] = map[Message]bool{}
	}
	for _, p := range pkgs {
		at := value{pkg: p.PkgPath, info: p.TypesInfo}
		for _, f := range p.Syntax {
			ast.Inspect(f, func(n ast.Node) bool {
				c.visit(at, n)
				return true
			})
		}
	}
	out := map[string][]Message{}
	for path, found := range c.messages {
		out[path] = whole(found)
	}
	return out
}

// whole returns messages, sorted, without parts that a message of the same package contains.
func whole(found map[Message]bool) []Message {
	all := slices.SortedFunc(maps.Keys(found), compare)
	return slices.DeleteFunc(slices.Clone(all), func(m Message) bool {
		return found[m] && slices.ContainsFunc(all, func(other Message) bool {
			return other != m && other.Kind == m.Kind && strings.Contains(other.Text, m.Text)
		})
	})
}

func compare(a, b Message) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
}

// found collects a text that has words.
func (c *collector) found(pkg string, u use, text string) {
	required := 1
	if u.inserted {
		required = 2
	}
	if c.messages[pkg] == nil || words(text) < required {
		return
	}
	m := Message{u.kind, text}
	part, known := c.messages[pkg][m]
	c.messages[pkg][m] = u.part && (part || !known)
}

// visit collects the messages of n, without those of its children.
func (c *collector) visit(at value, n ast.Node) {
	switch n := n.(type) {
	case *ast.CallExpr:
		c.arguments(at, n)
	case *ast.CompositeLit:
		c.literal(at, n)
	case *ast.AssignStmt:
		c.assignment(at, n)
	case *ast.FuncDecl:
		if n.Recv != nil && n.Name.Name == "Error" && n.Body != nil && n.Type.Params.NumFields() == 0 && n.Type.Results.NumFields() == 1 {
			for _, v := range returned(at, n.Body, 1, 0) {
				c.trace(v, use{kind: kindError})
			}
		}
	}
}

// arguments collects the messages among the arguments of a call.
func (c *collector) arguments(at value, call *ast.CallExpr) {
	s, ok := c.sinks[callee(at.info, call)]
	if !ok || isBuilder(at.info, call) {
		return
	}
	first := s.arg
	if first < 0 {
		first += len(call.Args)
	}
	if first < 0 || first >= len(call.Args) {
		return
	}
	last := first + 1
	if s.all {
		last = len(call.Args)
	}
	u := use{kind: s.kind}
	for _, arg := range call.Args[first:last] {
		c.trace(at.of(arg), u)
	}
	if s.format {
		c.inserted(at, call.Args[last:], u)
	}
}

// literal collects the messages in the fields of a struct, and warnings of admission.
func (c *collector) literal(at value, lit *ast.CompositeLit) {
	named := typeName(at.info.TypeOf(lit))
	for _, element := range lit.Elts {
		if named == warnings {
			c.trace(at.of(element), use{kind: kindWarning})
		}
		if field, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := field.Key.(*ast.Ident); ok && c.fields[named+"."+key.Name] != "" {
				c.trace(at.of(field.Value), use{kind: c.fields[named+"."+key.Name]})
			}
		}
	}
}

// assignment collects the messages that are assigned to fields.
func (c *collector) assignment(at value, n *ast.AssignStmt) {
	for i, left := range n.Lhs {
		field, ok := left.(*ast.SelectorExpr)
		if !ok || len(n.Lhs) != len(n.Rhs) {
			continue
		}
		if kind := c.fields[typeName(at.info.TypeOf(field.X))+"."+field.Sel.Name]; kind != "" {
			c.trace(at.of(n.Rhs[i]), use{kind: kind})
		}
	}
}

func isLetter(r rune) bool { return unicode.IsLetter(r) }

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
