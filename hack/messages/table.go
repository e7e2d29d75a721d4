package messages

import (
	"go/ast"
	"slices"
	"strings"
)

// Kinds of texts.
const (
	kindError     = "error"
	kindCondition = "condition"
	kindEvent     = "event"
	kindWait      = "wait"
	kindLog       = "log"
	kindInvalid   = "invalid"
	kindHelp      = "help"
	kindFlag      = "flag"
	kindMetric    = "metric"
	kindPrint     = "print"
	// kindText is a text that reaches its use through a variable, a field or a function.
	kindText = "text"
)

// functions maps functions, as they are written in calls, to the kind of their arguments.
var functions = map[string]string{
	"fmt.Errorf": kindError, "errors.New": kindError, "http.Error": kindError, "status.Error": kindError, "status.Errorf": kindError,
	"step.Terminal": kindError, "step.Stale": kindError, "admission.Denied": kindError,
	"field.Invalid": kindInvalid, "field.TypeInvalid": kindInvalid, "field.Forbidden": kindInvalid, "field.Required": kindInvalid,
	"field.NotSupported": kindInvalid, "field.InternalError": kindInvalid,
	"condition.False": kindCondition, "condition.Unknown": kindCondition,
	"step.Event": kindEvent, "step.Warning": kindEvent, "step.Transition": kindEvent,
	"step.Wait": kindWait, "step.WaitAtMost": kindWait,
	"fmt.Print": kindPrint, "fmt.Println": kindPrint, "fmt.Printf": kindPrint,
	"fmt.Fprint": kindPrint, "fmt.Fprintln": kindPrint, "fmt.Fprintf": kindPrint, "io.WriteString": kindPrint,
}

// methods maps methods, of whatever type, to the kind of their arguments.
var methods = map[string]string{
	"Event": kindEvent, "Eventf": kindEvent, "AnnotatedEventf": kindEvent, "Info": kindLog, "Error": kindLog, "MarkDeprecated": kindFlag,
}

// fields maps fields of structs, of whatever type, to the kind of their text.
var fields = map[string]string{
	"Use": kindHelp, "Short": kindHelp, "Long": kindHelp, "Example": kindHelp, "Deprecated": kindHelp, "Help": kindMetric,
}

// flagTypes are the types of flags: those of the package pflag, and of the package flag.
var flagTypes = []string{
	"Bool", "Int", "Int32", "Int64", "Uint", "Float32", "Float64", "String", "Duration", "StringSlice", "StringArray", "StringToString",
	"Func", "BoolFunc", "Text",
}

// kindOfCall returns the kind of the arguments of a call; otherwise, it returns the kind of what the call is part of.
func kindOfCall(call *ast.CallExpr, outer string) string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return outer
	}
	if from, ok := f.X.(*ast.Ident); ok && functions[from.Name+"."+f.Sel.Name] != "" {
		return functions[from.Name+"."+f.Sel.Name]
	}
	if kind := methods[f.Sel.Name]; kind != "" {
		return kind
	}
	if kind := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(f.Sel.Name, "F"), "P"), "Var"); len(call.Args) > 2 {
		if kind == "" || slices.Contains(flagTypes, kind) {
			return kindFlag
		}
	}
	return outer
}
