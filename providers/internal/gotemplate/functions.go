package gotemplate

import (
	"fmt"
	"maps"
	"reflect"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// nondeterministic returns functions of Sprig that are not deterministic, in addition to those that Sprig's hermetic set
// excludes.
func nondeterministic() []string {
	return []string{
		"ago", "bcrypt", "encryptAES", "genCA", "genCAWithKey", "genPrivateKey", "genSelfSignedCert",
		"genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "htpasswd", "randInt", "shuffle",
	}
}

// functions returns the functions that templates may use. They include the functions of text/template that return strings, so
// that they can be charged for; its other functions are cheap.
func functions(o Options) template.FuncMap {
	out := template.FuncMap{
		"print": fmt.Sprint, "println": fmt.Sprintln,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	}
	if o.Sprig {
		maps.Copy(out, sprig.HermeticTxtFuncMap())
		for _, name := range nondeterministic() {
			delete(out, name)
		}
		maps.Copy(out, sprigNumbers())
	}
	maps.Copy(out, numbers())
	maps.Copy(out, o.Functions)
	return out
}

// function is a function that templates may use.
type function struct {
	value   reflect.Value
	predict prediction // may be nil
}

// execution is one execution of a template.
type execution struct {
	budget Budget
	depth  int // of calls between templates
}

// functions returns the functions that a template uses, wrapped so that each call is charged.
func (e *execution) functions(used map[string]function) template.FuncMap {
	out := template.FuncMap{
		chargeFunction: func(units int64) string { e.budget.charge(units); return "" },
		enterFunction:  e.enter,
		leaveFunction:  func() string { e.depth--; return "" },
		rangeFunction:  e.startRange,
	}
	for name, f := range used {
		out[name] = e.charged(f).Interface()
	}
	return out
}

func (e *execution) enter(units int64) (string, error) {
	if e.depth++; e.depth > maxCallDepth {
		return "", &LimitError{What: fmt.Sprintf("calls between templates are nested more than %d levels deep: recursion must end", maxCallDepth)}
	}
	return "", e.budget.Spend(units + perNode)
}

// startRange charges for starting a loop: the keys of a map are sorted first.
func (e *execution) startRange(value any) (any, error) {
	v := reflect.ValueOf(value)
	for v.IsValid() && v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.IsValid() && v.Kind() == reflect.Map {
		return value, e.budget.Spend(int64(v.Len()) * perNode)
	}
	return value, nil
}

// charged wraps f so that each call is charged perCall, the size of the arguments, the prediction, and the size of the results.
func (e *execution) charged(f function) reflect.Value {
	kind := f.value.Type()
	return reflect.MakeFunc(kind, func(args []reflect.Value) []reflect.Value {
		in := measurement{limit: e.budget.left}
		for _, arg := range args {
			in.add(arg, 0)
		}
		e.budget.charge(perCall + in.bytes)
		if f.predict != nil {
			units, err := f.predict(flatten(kind, args), in)
			if err != nil {
				panic(err)
			}
			e.budget.charge(units)
		}
		call := f.value.Call
		if kind.IsVariadic() {
			call = f.value.CallSlice
		}
		results := call(args)
		out := measurement{limit: e.budget.left}
		for _, result := range results {
			out.add(result, 0)
		}
		e.budget.charge(out.bytes)
		return results
	})
}

// perCall is charged for each call of a function.
const perCall = 64

// flatten returns the arguments of a call, with those of a variadic parameter expanded.
func flatten(f reflect.Type, args []reflect.Value) []any {
	var out []any
	for i, arg := range args {
		if f.IsVariadic() && i == len(args)-1 {
			for j := range arg.Len() {
				out = append(out, arg.Index(j).Interface())
			}
			continue
		}
		out = append(out, arg.Interface())
	}
	return out
}
