package messages

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/packages"
)

// unknown replaces parts of messages that are only known at run time.
const unknown = "…"

// depth is the maximum number of variables and functions through which the parts of one message are traced.
const depth = 6

// maxForms is the maximum number of forms of one message.
const maxForms = 40

// value is an expression in a package.
type value struct {
	pkg  string
	info *types.Info
	expr ast.Expr
	// result is the index of the result, if expr is a call of a function with several.
	result int
}

// of returns another expression of the same package.
func (v value) of(e ast.Expr) value { return value{pkg: v.pkg, info: v.info, expr: e} }

// receiver is the index of a method's receiver among its parameters.
const receiver = -1

// parameter is a parameter of a function.
type parameter struct {
	// name of the function, as in functions.
	name     string
	index    int
	variadic bool
}

// result is a result of a function.
type result struct {
	name  string
	index int
}

// flow has where strings come from.
type flow struct {
	// own are the packages that are searched. Variables and fields of others are not followed: they hold names, mostly.
	own map[string]bool
	// assigned has the values that are assigned to variables and fields, or to elements of them.
	assigned map[string][]value
	returns  map[result][]value
	owner    map[types.Object]parameter
	// calls has the calls of functions, each in its package.
	calls map[string][]value
	// written has what is written to buffers, by their variables.
	written    map[string][]value
	parameters map[parameter]*types.Var
	// pointed has the parameters that get the address of a variable or field.
	pointed map[string][]parameter
}

// newFlow reads all assignments, fields, results, parameters and calls.
func newFlow(pkgs []*packages.Package) flow {
	f := flow{
		own:      map[string]bool{},
		assigned: map[string][]value{}, returns: map[result][]value{}, owner: map[types.Object]parameter{},
		calls: map[string][]value{}, written: map[string][]value{}, pointed: map[string][]parameter{},
		parameters: map[parameter]*types.Var{},
	}
	for _, p := range pkgs {
		f.own[p.PkgPath] = true
	}
	for _, p := range pkgs {
		at := value{pkg: p.PkgPath, info: p.TypesInfo}
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				f.read(at, n)
				return true
			})
		}
	}
	return f
}

// read records what one node does.
func (f flow) read(at value, n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if o := at.info.Defs[n.Name]; o != nil && n.Body != nil {
			f.function(at, nameOf(o), n.Type, n.Body)
			if n.Recv != nil && len(n.Recv.List[0].Names) > 0 {
				f.owner[at.info.Defs[n.Recv.List[0].Names[0]]] = parameter{name: nameOf(o), index: receiver}
			}
		}
	case *ast.AssignStmt:
		f.assignments(at, n.Lhs, n.Rhs)
	case *ast.ValueSpec:
		names := make([]ast.Expr, 0, len(n.Names))
		for _, name := range n.Names {
			names = append(names, name)
		}
		f.assignments(at, names, n.Values)
	case *ast.RangeStmt:
		f.elements(at, n)
	case *ast.CompositeLit:
		f.literal(at, n)
	case *ast.CallExpr:
		f.call(at, n)
	}
}

// assignments records a statement that assigns values.
func (f flow) assignments(at value, left, right []ast.Expr) {
	for i, to := range left {
		switch {
		case len(left) == len(right):
			f.assign(variable(at.info, to), at.of(right[i]))
		case len(right) == 1:
			if _, calls := ast.Unparen(right[0]).(*ast.CallExpr); calls || i == 0 {
				from := at.of(right[0])
				from.result = i
				f.assign(variable(at.info, to), from)
			}
		}
	}
}

// elements records the variables of a loop over a list, a map or an iterator. Keys of maps are not messages.
func (f flow) elements(at value, n *ast.RangeStmt) {
	if n.Value != nil {
		f.assign(variable(at.info, n.Value), at.of(n.X))
	}
	if t := at.info.TypeOf(n.X); n.Key != nil && t != nil {
		if _, iterates := t.Underlying().(*types.Signature); iterates {
			f.assign(variable(at.info, n.Key), at.of(n.X))
		}
	}
}

// literal records the fields of a struct.
func (f flow) literal(at value, lit *ast.CompositeLit) {
	t := at.info.TypeOf(lit)
	if t == nil {
		return
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	fields, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, element := range lit.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			f.assign(variable(at.info, pair.Key), at.of(pair.Value))
		} else if i < fields.NumFields() {
			f.assign(fields.Field(i), at.of(element))
		}
	}
}

// call records a call, and what it writes to a buffer.
func (f flow) call(at value, call *ast.CallExpr) {
	name := callee(at.info, call)
	if name == "" {
		return
	}
	f.calls[name] = append(f.calls[name], at.of(call))
	for i, arg := range call.Args {
		if address, ok := ast.Unparen(arg).(*ast.UnaryExpr); ok && address.Op == token.AND {
			if v := variable(at.info, address.X); v != nil && holdsText(v.Type(), 3) {
				f.pointed[localName(v)] = append(f.pointed[localName(v)], parameter{name: name, index: i})
			}
		}
	}
	switch name {
	case "strings.Builder.WriteString", "bytes.Buffer.WriteString":
		if v := variable(at.info, receiverOf(call)); v != nil && len(call.Args) == 1 {
			f.written[localName(v)] = append(f.written[localName(v)], at.of(call.Args[0]))
		}
	case "fmt.Fprint", "fmt.Fprintln", "fmt.Fprintf":
		if v := variable(at.info, call.Args[0]); v != nil && isBuilder(at.info, call) {
			for _, arg := range call.Args[1:] {
				f.written[localName(v)] = append(f.written[localName(v)], at.of(arg))
			}
		}
	}
}

// assign records an assignment to a variable or field.
func (f flow) assign(to *types.Var, from value) {
	if to == nil || to.Pkg() == nil || !f.own[to.Pkg().Path()] {
		return
	}
	if lit, ok := from.expr.(*ast.FuncLit); ok {
		f.function(from, localName(to), lit.Type, lit.Body)
	}
	if holdsText(to.Type(), 3) {
		f.assigned[localName(to)] = append(f.assigned[localName(to)], from)
	}
}

// holdsText reports whether a type is a string, or a list or map of strings.
func holdsText(t types.Type, nested int) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&types.IsString != 0
	case *types.Slice:
		return nested > 0 && holdsText(u.Elem(), nested-1)
	case *types.Array:
		return nested > 0 && holdsText(u.Elem(), nested-1)
	case *types.Map:
		return nested > 0 && holdsText(u.Elem(), nested-1)
	case *types.Pointer:
		return nested > 0 && holdsText(u.Elem(), nested-1)
	}
	return false
}

// function records the parameters and results of a function.
func (f flow) function(at value, name string, t *ast.FuncType, body *ast.BlockStmt) {
	if name == "" {
		return
	}
	index := 0
	for _, field := range t.Params.List {
		_, variadic := field.Type.(*ast.Ellipsis)
		for _, param := range field.Names {
			f.owner[at.info.Defs[param]] = parameter{name: name, index: index, variadic: variadic}
			f.parameters[parameter{name: name, index: index}], _ = at.info.Defs[param].(*types.Var)
			index++
		}
		if len(field.Names) == 0 {
			index++
		}
	}
	if t.Results == nil {
		return
	}
	index = 0
	for _, field := range t.Results.List {
		for i := range max(1, len(field.Names)) {
			of := result{name, index}
			f.returns[of] = append(f.returns[of], returned(at, body, t.Results.NumFields(), index)...)
			if i < len(field.Names) && returnsNothing(body) {
				f.returns[of] = append(f.returns[of], at.of(field.Names[i]))
			}
			index++
		}
	}
}

// texts returns the possible values of an expression.
func (f flow) texts(v value) []string {
	out := f.follow(v, depth)
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxForms)]
}

// follow returns the constants that reach a value through at most left variables and functions.
func (f flow) follow(v value, left int) []string {
	if text, ok := constantOf(v); ok {
		return []string{text}
	}
	if left == 0 {
		return []string{unknown}
	}
	switch e := ast.Unparen(v.expr).(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return join(f.follow(v.of(e.X), left), f.follow(v.of(e.Y), left))
		}
	case *ast.CallExpr:
		if isConversion(v.info, e) {
			return f.follow(v.of(e.Args[0]), left)
		}
		name := callee(v.info, e)
		if i, formats := formatArgument(name); formats {
			return f.follow(v.of(e.Args[i]), left)
		}
		return f.all(f.returns[result{name, v.result}], left-1)
	case *ast.Ident, *ast.SelectorExpr:
		if o := variable(v.info, e); o != nil {
			return f.all(f.assigned[localName(o)], left-1)
		}
	}
	return []string{unknown}
}

// all returns the possible values of the expressions, about maxForms of them at most.
func (f flow) all(values []value, left int) []string {
	var out []string
	for _, v := range values {
		if out = append(out, f.follow(v, left)...); len(out) >= maxForms {
			break
		}
	}
	if len(out) == 0 {
		return []string{unknown}
	}
	return out
}

// join returns every text of a followed by every text of b.
func join(a, b []string) []string {
	var out []string
	for _, x := range a {
		for _, y := range b {
			if len(out) < maxForms {
				out = append(out, x+y)
			}
		}
	}
	return out
}

// constantOf returns the text of a constant.
func constantOf(v value) (string, bool) {
	tv := v.info.Types[v.expr]
	if tv.Value == nil || tv.Value.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(tv.Value), true
}

// returned lists the results at an index of the return statements of a function with total results, without those of functions
// inside it.
func returned(at value, body *ast.BlockStmt, total, index int) []value {
	var out []value
	statements(body, func(n *ast.ReturnStmt) {
		switch len(n.Results) {
		case total:
			out = append(out, at.of(n.Results[index]))
		case 1:
			call := at.of(n.Results[0])
			call.result = index
			out = append(out, call)
		}
	})
	return out
}

// returnsNothing reports whether a function has a return statement without values.
func returnsNothing(body *ast.BlockStmt) bool {
	found := false
	statements(body, func(n *ast.ReturnStmt) { found = found || len(n.Results) == 0 })
	return found
}

// statements calls do for the return statements of a function, without those of functions inside it.
func statements(body *ast.BlockStmt, do func(*ast.ReturnStmt)) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			do(n)
		}
		return true
	})
}

// variable returns the variable or field of an expression, or of the list or map whose element it is; nil if there is none.
func variable(info *types.Info, e ast.Expr) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ := info.ObjectOf(e).(*types.Var)
		return v
	case *ast.SelectorExpr:
		v, _ := info.ObjectOf(e.Sel).(*types.Var)
		return v
	case *ast.IndexExpr:
		return variable(info, e.X)
	case *ast.SliceExpr:
		return variable(info, e.X)
	case *ast.StarExpr:
		return variable(info, e.X)
	case *ast.UnaryExpr:
		return variable(info, e.X)
	}
	return nil
}

// receiverOf returns the expression whose method is called; nil if it is a function.
func receiverOf(call *ast.CallExpr) ast.Expr {
	if selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		return selector.X
	}
	return nil
}

// isConversion reports whether a call converts to another type.
func isConversion(info *types.Info, call *ast.CallExpr) bool {
	return info.Types[call.Fun].IsType() && len(call.Args) == 1
}

// localName returns a name for a variable or field, which is its position.
func localName(v *types.Var) string {
	if v.Pkg() == nil {
		return ""
	}
	return fmt.Sprintf("%s.%s@%d", v.Pkg().Path(), v.Name(), v.Pos())
}
