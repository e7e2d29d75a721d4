package aliases

import (
	"fmt"
	"go/types"
	"io"
	"maps"
	"slices"
	"strings"
)

// writer collects the declarations of a file.
type writer struct {
	// imports are names of imported packages, by path.
	imports                  map[string]string
	types, constants, values []string
	functions                []string
}

// empty reports whether there is no declaration.
func (w *writer) empty() bool {
	return len(w.types)+len(w.constants)+len(w.values)+len(w.functions) == 0
}

// add adds an alias of an exported object. Functions are called by functions of the same name, which identify hooks.
func (w *writer) add(o types.Object) {
	if !o.Exported() {
		return
	}
	name := o.Name()
	same := fmt.Sprintf("\t// %s is %s of the aliased package.\n\t%s = home.%s\n", name, name, name, name)
	switch o := o.(type) {
	case *types.TypeName:
		w.types = append(w.types, same)
	case *types.Const:
		w.constants = append(w.constants, same)
	case *types.Var:
		w.values = append(w.values, same)
	case *types.Func:
		w.functions = append(w.functions, w.function(o))
	}
}

// function returns a function that calls another one. Neither of them is variadic or generic, in the packages that have aliases.
func (w *writer) function(f *types.Func) string {
	signature := f.Signature()
	var parameters, arguments, results []string
	for i := range signature.Params().Len() {
		argument := fmt.Sprintf("a%d", i)
		arguments = append(arguments, argument)
		parameters = append(parameters, argument+" "+types.TypeString(signature.Params().At(i).Type(), w.qualify))
	}
	for r := range signature.Results().Variables() {
		results = append(results, types.TypeString(r.Type(), w.qualify))
	}
	call := fmt.Sprintf("home.%s(%s)", f.Name(), strings.Join(arguments, ", "))
	if len(results) > 0 {
		call = "return " + call
	}
	return fmt.Sprintf("// %s is %s of the aliased package.\nfunc %s(%s) (%s) { %s }\n\n",
		f.Name(), f.Name(), f.Name(), strings.Join(parameters, ", "), strings.Join(results, ", "), call)
}

// qualify imports a package under its name, which is preceded by the one of its directory if another package has it.
func (w *writer) qualify(p *types.Package) string {
	if name, ok := w.imports[p.Path()]; ok {
		return name
	}
	name := p.Name()
	if parts := strings.Split(p.Path(), "/"); slices.Contains(slices.Collect(maps.Values(w.imports)), name) && len(parts) > 1 {
		name = strings.ReplaceAll(parts[len(parts)-2], "-", "") + name
	}
	w.imports[p.Path()] = name
	return name
}

func (w *writer) write(out io.Writer) {
	fmt.Fprintln(out, "import (")
	for _, path := range slices.Sorted(maps.Keys(w.imports)) {
		fmt.Fprintf(out, "\t%s %q\n", w.imports[path], path)
	}
	fmt.Fprint(out, ")\n\n")
	for _, group := range []struct {
		keyword string
		lines   []string
	}{{"type", w.types}, {"const", w.constants}, {"var", w.values}} {
		if len(group.lines) > 0 {
			fmt.Fprintf(out, "%s (\n%s)\n\n", group.keyword, strings.Join(group.lines, ""))
		}
	}
	for _, f := range w.functions {
		fmt.Fprint(out, f)
	}
}
