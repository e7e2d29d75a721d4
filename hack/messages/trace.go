package messages

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// use is how a text is used.
type use struct {
	kind string
	// inserted is whether the text is inserted into another message, for example for the verb of a format. Then names are expected,
	// and only texts of several words are messages.
	inserted bool
	// part is whether the text is a part of another message, which may be collected as a whole.
	part bool
}

// trace collects the texts that reach a value, through any number of variables, fields, lists and functions. Each is collected in
// the package where it is written.
func (c *collector) trace(v value, u use) {
	if text, ok := constantOf(v); ok {
		c.found(v.pkg, u, text)
		return
	}
	switch e := ast.Unparen(v.expr).(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			for _, text := range c.flow.texts(v) {
				c.found(v.pkg, u, text)
			}
			c.operands(v, e, u)
		}
	case *ast.CallExpr:
		c.call(v, e, u)
	case *ast.CompositeLit:
		if t := v.info.TypeOf(e); t != nil && holdsText(t, 3) {
			for _, element := range e.Elts {
				if pair, ok := element.(*ast.KeyValueExpr); ok {
					element = pair.Value
				}
				c.trace(v.of(element), u)
			}
		}
	default:
		if o := variable(v.info, e); o != nil {
			c.variable(o, u)
		}
	}
}

// operands traces the operands of a concatenation.
func (c *collector) operands(v value, e *ast.BinaryExpr, u use) {
	u.inserted, u.part = true, true
	for _, operand := range []ast.Expr{e.X, e.Y} {
		if nested, ok := ast.Unparen(operand).(*ast.BinaryExpr); ok {
			c.operands(v, nested, u)
		} else if _, ok := constantOf(v.of(operand)); !ok {
			c.trace(v.of(operand), u)
		}
	}
}

// call traces the result of a call.
func (c *collector) call(v value, call *ast.CallExpr, u use) {
	part := use{kind: u.kind, inserted: u.inserted, part: true}
	name := callee(v.info, call)
	format, formats := formatArgument(name)
	switch {
	case isConversion(v.info, call):
		c.trace(v.of(call.Args[0]), u)
	case formats:
		c.trace(v.of(call.Args[format]), u)
		c.inserted(v, call.Args[format+1:], u)
	case v.info.Types[call.Fun].IsBuiltin() || passesAll(name):
		for _, arg := range call.Args {
			c.trace(v.of(arg), u)
		}
	case passesFirst(name) && len(call.Args) > 0:
		c.trace(v.of(call.Args[0]), part)
	case name == "strings.Builder.String" || name == "bytes.Buffer.String":
		if o := variable(v.info, receiverOf(call)); o != nil {
			for _, text := range c.flow.written[localName(o)] {
				c.trace(text, part)
			}
		}
	default:
		c.result(result{name, v.result}, u)
	}
}

// inserted traces values that are inserted into a message.
func (c *collector) inserted(v value, args []ast.Expr, u use) {
	u.inserted, u.part = true, true
	for _, arg := range args {
		t := v.info.TypeOf(arg)
		switch {
		case t == nil:
		case holdsText(t, 1) || isVariadic(t):
			c.trace(v.of(arg), u)
		default:
			c.result(result{name: typeName(t) + ".String"}, u)
		}
	}
}

// isVariadic reports whether a type is that of the last parameter of a function that formats its arguments.
func isVariadic(t types.Type) bool {
	list, ok := t.(*types.Slice)
	if !ok {
		return false
	}
	i, ok := list.Elem().Underlying().(*types.Interface)
	return ok && i.Empty()
}

// variable traces what is assigned to a variable or field. For a parameter, that are the arguments of all calls.
func (c *collector) variable(v *types.Var, u use) {
	name := localName(v)
	if !c.first(name, u) {
		return
	}
	for _, value := range c.flow.assigned[name] {
		c.trace(value, u)
	}
	for _, p := range c.flow.pointed[name] {
		if param := c.flow.parameters[p]; param != nil {
			c.variable(param, u)
		}
	}
	owner := c.flow.owner[v]
	if _, collected := c.sinks[owner.name]; owner.name == "" || collected {
		return // The messages of functions in the table are collected where these are called.
	}
	for _, call := range c.flow.calls[owner.name] {
		for _, arg := range owner.of(call.expr.(*ast.CallExpr)) {
			c.trace(call.of(arg), u)
		}
	}
}

// of returns the arguments of a call for a parameter.
func (p parameter) of(call *ast.CallExpr) []ast.Expr {
	switch {
	case p.index == receiver:
		if e := receiverOf(call); e != nil {
			return []ast.Expr{e}
		}
		return nil
	case p.index >= len(call.Args):
		return nil
	case p.variadic:
		return call.Args[p.index:]
	}
	return call.Args[p.index : p.index+1]
}

// result traces a result of a function.
func (c *collector) result(r result, u use) {
	if r.name == "" || !c.first(r, u) {
		return
	}
	for _, value := range c.flow.returns[r] {
		c.trace(value, u)
	}
}

// first reports whether something has not been traced for this use before.
func (c *collector) first(what any, u use) bool {
	key := traced{what, u}
	if c.traced[key] {
		return false
	}
	c.traced[key] = true
	return true
}

// traced is a variable, field or result that has been traced.
type traced struct {
	what any
	use  use
}

// formatArgument returns which argument of a function is the format, or the text, of its result.
func formatArgument(name string) (int, bool) {
	switch name {
	case "fmt.Sprintf", "fmt.Errorf", "errors.New", "strings.TrimSpace", "strings.TrimLeft", "k8s.io/utils/ptr.To":
		return 0, true
	case "fmt.Appendf":
		return 1, true
	}
	return 0, false
}

// passesFirst reports whether the result of a function is its first argument in another form.
func passesFirst(name string) bool {
	switch name {
	case "strings.Join", "slices.Clone", "slices.Sorted", "slices.Compact", "slices.Values", "maps.Values", "strings.TrimRight", "strings.TrimSuffix":
		return true
	}
	return false
}

// passesAll reports whether the result of a function is one, or a list, of its arguments.
func passesAll(name string) bool {
	switch name {
	case "cmp.Or", "fmt.Sprint", "fmt.Sprintln", "slices.Concat":
		return true
	}
	return false
}

// words returns the number of words in a text besides formatting verbs and terminal escape sequences, at most two.
func words(text string) int {
	n := 0
	for word := range strings.FieldsSeq(text) {
		if i := strings.IndexAny(word, "%\x1b"); i >= 0 {
			word = word[:i]
		}
		if strings.ContainsFunc(word, isLetter) {
			n++
		}
	}
	return min(n, 2)
}
