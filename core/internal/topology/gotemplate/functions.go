package gotemplate

import (
	"fmt"
	"maps"
	"reflect"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// varying are functions of Sprig whose result is not determined by their arguments, besides those that Sprig itself
// leaves out of its hermetic set.
func varying() []string {
	return []string{
		"ago", "bcrypt", "encryptAES", "genCA", "genCAWithKey", "genPrivateKey", "genSelfSignedCert",
		"genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "htpasswd", "randInt", "shuffle",
	}
}

// functions are those that templates may use. Functions of text/template itself that make strings are among them, so
// that they can be charged for; the others are cheap.
func functions(withSprig bool) template.FuncMap {
	out := template.FuncMap{
		"print": fmt.Sprint, "printf": fmt.Sprintf, "println": fmt.Sprintln,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	}
	if !withSprig {
		return out
	}
	maps.Copy(out, sprig.HermeticTxtFuncMap())
	for _, name := range varying() {
		delete(out, name)
	}
	return out
}

// function is one that templates may use.
type function struct {
	value   reflect.Value
	predict prediction // may be nil
}

// execution is one execution of a template.
type execution struct {
	budget Budget
	calls  int
}

// functions are those that a template uses, each charging for itself.
func (e *execution) functions(used map[string]function) template.FuncMap {
	out := template.FuncMap{
		chargeFunction: func(units int64) string { e.budget.charge(units); return "" },
		enterFunction:  e.enter,
		leaveFunction:  func() string { e.calls--; return "" },
		rangeFunction:  e.over,
	}
	for name, f := range used {
		out[name] = e.charged(f).Interface()
	}
	return out
}

func (e *execution) enter(units int64) (string, error) {
	if e.calls++; e.calls > maxCalls {
		return "", &LimitError{What: fmt.Sprintf("its templates call each other more than %d deep: templates that call themselves have to come to an end", maxCalls)}
	}
	return "", e.budget.Spend(units + perNode)
}

// over charges for going through something: the keys of a map are sorted first.
func (e *execution) over(value any) (any, error) {
	v := reflect.ValueOf(value)
	for v.IsValid() && v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.IsValid() && v.Kind() == reflect.Map {
		return value, e.budget.Spend(int64(v.Len()) * perNode)
	}
	return value, nil
}

// charged is f with a price: perCall, the size of the arguments, what the function may make of them, and the size of the
// results.
func (e *execution) charged(f function) reflect.Value {
	kind := f.value.Type()
	return reflect.MakeFunc(kind, func(args []reflect.Value) []reflect.Value {
		in := measured{limit: e.budget.left}
		for _, arg := range args {
			in.add(arg, 0)
		}
		e.budget.charge(perCall + in.bytes)
		if f.predict != nil {
			units, err := f.predict(flat(kind, args), in)
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
		out := measured{limit: e.budget.left}
		for _, result := range results {
			out.add(result, 0)
		}
		e.budget.charge(out.bytes)
		return results
	})
}

// perCall is the price of calling a function.
const perCall = 64

// flat are the arguments of a call, those of a variadic parameter one by one.
func flat(f reflect.Type, args []reflect.Value) []any {
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
