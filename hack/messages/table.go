package messages

// Kinds of messages.
const (
	kindError     = "error"
	kindCondition = "condition"
	kindEvent     = "event"
	kindWait      = "wait"
	kindLog       = "log"
	kindInvalid   = "invalid"
	kindWarning   = "warning"
	kindHelp      = "help"
	kindFlag      = "flag"
	kindPrint     = "print"
)

// sink is a parameter of a function that outputs a message.
type sink struct {
	kind string
	// arg is the index of the first argument that is a message; a negative one counts from the last parameter.
	arg int
	// all is whether the arguments after arg are also messages.
	all bool
}

const (
	stepPackage      = prefix + "provider/step"
	conditionPackage = prefix + "provider/condition"
	fieldPackage     = "k8s.io/apimachinery/pkg/util/validation/field"
	errorsPackage    = "k8s.io/apimachinery/pkg/api/errors"
	recordPackage    = "k8s.io/client-go/tools/record"
	eventsPackage    = "k8s.io/client-go/tools/events"
)

// functions maps functions and methods ("path.Name", "path.Type.Name") to their sinks. Functions of this repository that pass
// a parameter on to one of them need no entry.
func functions() map[string]sink {
	out := map[string]sink{
		"fmt.Errorf": {kind: kindError}, "errors.New": {kind: kindError},

		fieldPackage + ".Invalid":       {kind: kindInvalid, arg: 2},
		fieldPackage + ".TypeInvalid":   {kind: kindInvalid, arg: 2},
		fieldPackage + ".Forbidden":     {kind: kindInvalid, arg: 1},
		fieldPackage + ".Required":      {kind: kindInvalid, arg: 1},
		fieldPackage + ".InternalError": {kind: kindInvalid, arg: 1},

		errorsPackage + ".NewBadRequest":                 {kind: kindError},
		errorsPackage + ".NewServiceUnavailable":         {kind: kindError},
		errorsPackage + ".NewTooManyRequestsError":       {kind: kindError},
		errorsPackage + ".NewRequestEntityTooLargeError": {kind: kindError},
		errorsPackage + ".NewResourceExpired":            {kind: kindError},
		errorsPackage + ".NewGone":                       {kind: kindError},
		errorsPackage + ".NewUnauthorized":               {kind: kindError},
		errorsPackage + ".NewTimeoutError":               {kind: kindError},
		errorsPackage + ".NewTooManyRequests":            {kind: kindError},
		errorsPackage + ".NewForbidden":                  {kind: kindError, arg: 2},
		errorsPackage + ".NewConflict":                   {kind: kindError, arg: 2},
		errorsPackage + ".NewInternalError":              {kind: kindError},
		errorsPackage + ".NewGenericServerResponse":      {kind: kindError, arg: 4},

		conditionPackage + ".False":   {kind: kindCondition, arg: 3},
		conditionPackage + ".Unknown": {kind: kindCondition, arg: 2},

		stepPackage + ".Event":      {kind: kindEvent, arg: 2},
		stepPackage + ".Warning":    {kind: kindEvent, arg: 2},
		stepPackage + ".Transition": {kind: kindEvent, arg: 2},
		stepPackage + ".Wait":       {kind: kindWait},
		stepPackage + ".WaitAtMost": {kind: kindWait, arg: 1},
		stepPackage + ".Stale":      {kind: kindError},

		recordPackage + ".EventRecorder.Event":           {kind: kindEvent, arg: 3},
		recordPackage + ".EventRecorder.Eventf":          {kind: kindEvent, arg: 3},
		recordPackage + ".EventRecorder.AnnotatedEventf": {kind: kindEvent, arg: 4},
		eventsPackage + ".EventRecorder.Eventf":          {kind: kindEvent, arg: 5},

		"github.com/go-logr/logr.Logger.Info":  {kind: kindLog},
		"github.com/go-logr/logr.Logger.Error": {kind: kindLog, arg: 1},

		"fmt.Print": {kind: kindPrint, all: true}, "fmt.Println": {kind: kindPrint, all: true}, "fmt.Printf": {kind: kindPrint},
		"fmt.Fprint":     {kind: kindPrint, arg: 1, all: true},
		"fmt.Fprintln":   {kind: kindPrint, arg: 1, all: true},
		"fmt.Fprintf":    {kind: kindPrint, arg: 1},
		"io.WriteString": {kind: kindPrint, arg: 1},
	}
	for _, set := range []string{"github.com/spf13/pflag.FlagSet.", "flag.FlagSet.", "flag."} {
		for _, value := range []string{"Bool", "Int", "Int32", "Int64", "Uint", "Float32", "Float64", "String", "Duration",
			"StringSlice", "StringArray", "StringToString", "Func", "BoolFunc", "TextVar", ""} {
			for _, form := range []string{"", "P", "Var", "VarP", "VarPF"} {
				if value+form != "" {
					out[set+value+form] = sink{kind: kindFlag, arg: -1}
				}
			}
		}
	}
	// The usage of these comes before a function.
	out["flag.FlagSet.Func"], out["flag.Func"] = sink{kind: kindFlag, arg: 1}, sink{kind: kindFlag, arg: 1}
	return out
}

// fields maps fields of structs ("path.Type.Field") to the kind of their messages.
func fields() map[string]string {
	const cobra = "github.com/spf13/cobra.Command."
	return map[string]string{
		cobra + "Use": kindHelp, cobra + "Short": kindHelp, cobra + "Long": kindHelp, cobra + "Example": kindHelp,
		cobra + "Deprecated": kindHelp,

		"k8s.io/apimachinery/pkg/apis/meta/v1.Status.Message":      kindError,
		"k8s.io/apimachinery/pkg/apis/meta/v1.StatusCause.Message": kindError,
		prefix + "api/core/v1beta1.Condition.Message":              kindCondition,
	}
}

// warnings is the type of the warnings that admission returns.
const warnings = "sigs.k8s.io/controller-runtime/pkg/webhook/admission.Warnings"
