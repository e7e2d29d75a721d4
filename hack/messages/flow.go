package messages

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/types/typeutil"
)

// unknown replaces parts of messages that are only known at run time.
const unknown = "…"

// depth is the maximum number of variables and functions through which a text is traced.
const depth = 6

// maxForms is the maximum number of forms of one message.
const maxForms = 40

// value is an expression with the types of its package.
type value struct {
	info *types.Info
	expr ast.Expr
}

// parameter is a parameter of a function.
type parameter struct {
	// name of the function, as in functions.
	name     string
	index    int
	variadic bool
}

// flow traces strings to their sources.
type flow struct {
	// assigned has the values that are assigned to variables and fields.
	assigned map[string][]value
	// returns has the first results of functions.
	returns map[string][]value
	owner   map[types.Object]parameter
}

// newFlow reads all assignments, fields, results and parameters.
func newFlow(pkgs []*packages.Package) flow {
	f := flow{assigned: map[string][]value{}, returns: map[string][]value{}, owner: map[types.Object]parameter{}}
	for _, p := range pkgs {
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				f.read(p.TypesInfo, n)
				return true
			})
		}
	}
	return f
}

// read records the assignments, results and parameters of one node.
func (f flow) read(info *types.Info, n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if o := info.Defs[n.Name]; o != nil && n.Body != nil {
			f.function(info, nameOf(o), n.Type, n.Body)
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) {
				f.assign(info, left, n.Rhs[i])
			} else if i == 0 {
				f.assign(info, left, n.Rhs[0])
			}
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if i < len(n.Values) {
				f.assign(info, name, n.Values[i])
			}
		}
	case *ast.KeyValueExpr:
		f.assign(info, n.Key, n.Value)
	}
}

// assign records an assignment to a variable or field.
func (f flow) assign(info *types.Info, left, right ast.Expr) {
	v := variable(info, left)
	if v == nil {
		return
	}
	if lit, ok := right.(*ast.FuncLit); ok {
		f.function(info, localName(v), lit.Type, lit.Body)
	}
	if types.Identical(v.Type().Underlying(), types.Typ[types.String]) {
		f.assigned[localName(v)] = append(f.assigned[localName(v)], value{info, right})
	}
}

// function records the parameters and results of a function.
func (f flow) function(info *types.Info, name string, t *ast.FuncType, body *ast.BlockStmt) {
	if name == "" {
		return
	}
	index := 0
	for _, field := range t.Params.List {
		_, variadic := field.Type.(*ast.Ellipsis)
		for _, param := range field.Names {
			f.owner[info.Defs[param]] = parameter{name: name, index: index, variadic: variadic}
			index++
		}
		if len(field.Names) == 0 {
			index++
		}
	}
	for _, e := range returned(body, 0) {
		f.returns[name] = append(f.returns[name], value{info, e})
	}
}

// texts returns the possible values of an expression.
func (f flow) texts(info *types.Info, e ast.Expr) []string {
	out := f.follow(value{info, e}, depth)
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxForms)]
}

// follow returns the constants that reach a value through at most left variables and functions.
func (f flow) follow(v value, left int) []string {
	if tv := v.info.Types[v.expr]; tv.Value != nil && tv.Value.Kind() == constant.String {
		return []string{constant.StringVal(tv.Value)}
	}
	if left == 0 {
		return []string{unknown}
	}
	switch e := ast.Unparen(v.expr).(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return join(f.follow(value{v.info, e.X}, left), f.follow(value{v.info, e.Y}, left))
		}
	case *ast.CallExpr:
		return f.result(v.info, e, left)
	case *ast.Ident, *ast.SelectorExpr:
		if o := variable(v.info, e); o != nil {
			return f.all(f.assigned[localName(o)], left-1)
		}
	}
	return []string{unknown}
}

// result returns the possible results of a call.
func (f flow) result(info *types.Info, call *ast.CallExpr, left int) []string {
	name := callee(info, call)
	switch name {
	case "fmt.Sprintf", "fmt.Errorf", "errors.New", "strings.TrimSpace", "strings.TrimLeft":
		if len(call.Args) > 0 {
			return f.follow(value{info, call.Args[0]}, left)
		}
	}
	return f.all(f.returns[name], left-1)
}

// all returns the possible values of all expressions.
func (f flow) all(values []value, left int) []string {
	var out []string
	for _, v := range values {
		out = append(out, f.follow(v, left)...)
	}
	if len(out) == 0 {
		return []string{unknown}
	}
	return out
}

// parameters returns the parameters of functions that are part of an expression's text.
func (f flow) parameters(info *types.Info, e ast.Expr) []types.Object {
	var out []types.Object
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if o := info.Uses[e]; o != nil && f.owner[o].name != "" {
			out = append(out, o)
		}
	case *ast.BinaryExpr:
		out = append(f.parameters(info, e.X), f.parameters(info, e.Y)...)
	case *ast.CallExpr:
		if name := nameOf(typeutil.Callee(info, e)); (name == "fmt.Sprintf" || name == "fmt.Errorf" || name == "errors.New") && len(e.Args) > 0 {
			out = f.parameters(info, e.Args[0])
		}
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

// returned lists the results at an index of the return statements of a function, without those of functions inside it.
func returned(body *ast.BlockStmt, index int) []ast.Expr {
	var out []ast.Expr
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if index < len(n.Results) {
				out = append(out, n.Results[index])
			}
		}
		return true
	})
	return out
}

// variable returns the variable or field of an expression, or nil.
func variable(info *types.Info, e ast.Expr) *types.Var {
	var id *ast.Ident
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		id = e
	case *ast.SelectorExpr:
		id = e.Sel
	default:
		return nil
	}
	v, _ := info.ObjectOf(id).(*types.Var)
	return v
}

// localName returns a name for a variable or field, which is its position.
func localName(v *types.Var) string {
	if v.Pkg() == nil {
		return ""
	}
	return fmt.Sprintf("%s.%s@%d", v.Pkg().Path(), v.Name(), v.Pos())
}
