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
	kindMetric    = "metric"
	kindPrint     = "print"
)

// sink is a parameter of a function that outputs a message.
type sink struct {
	kind string
	// arg is the index of the first argument that is a message; a negative one counts from the last parameter.
	arg int
	// all is whether the arguments after arg are also messages.
	all bool
	// format is whether the arguments after arg are inserted into the message.
	format bool
}

const (
	stepPackage      = prefix + "sdk/step"
	conditionPackage = prefix + "sdk/condition"
	fieldPackage     = "k8s.io/apimachinery/pkg/util/validation/field"
	errorsPackage    = "k8s.io/apimachinery/pkg/api/errors"
	recordPackage    = "k8s.io/client-go/tools/record"
	eventsPackage    = "k8s.io/client-go/tools/events"
	admissionPackage = "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// functions maps functions and methods ("path.Name", "path.Type.Name") to their sinks. Functions of this repository that pass
// a parameter on to one of them need no entry, unless messages should be collected under another kind.
func functions() map[string]sink {
	out := map[string]sink{
		"fmt.Errorf": {kind: kindError, format: true}, "errors.New": {kind: kindError},

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

		conditionPackage + ".False":   {kind: kindCondition, arg: 3, format: true},
		conditionPackage + ".Unknown": {kind: kindCondition, arg: 2, format: true},

		stepPackage + ".Event":      {kind: kindEvent, arg: 2, format: true},
		stepPackage + ".Warning":    {kind: kindEvent, arg: 2, format: true},
		stepPackage + ".Transition": {kind: kindEvent, arg: 2, format: true},
		stepPackage + ".Wait":       {kind: kindWait},
		stepPackage + ".WaitAtMost": {kind: kindWait, arg: 1},
		stepPackage + ".Stale":      {kind: kindError, format: true},

		recordPackage + ".EventRecorder.Event":           {kind: kindEvent, arg: 3},
		recordPackage + ".EventRecorder.Eventf":          {kind: kindEvent, arg: 3, format: true},
		recordPackage + ".EventRecorder.AnnotatedEventf": {kind: kindEvent, arg: 4, format: true},
		eventsPackage + ".EventRecorder.Eventf":          {kind: kindEvent, arg: 5, format: true},

		"github.com/go-logr/logr.Logger.Info":  {kind: kindLog},
		"github.com/go-logr/logr.Logger.Error": {kind: kindLog, arg: 1},

		"fmt.Print": {kind: kindPrint, all: true}, "fmt.Println": {kind: kindPrint, all: true}, "fmt.Printf": {kind: kindPrint, format: true},
		"fmt.Fprint":     {kind: kindPrint, arg: 1, all: true},
		"fmt.Fprintln":   {kind: kindPrint, arg: 1, all: true},
		"fmt.Fprintf":    {kind: kindPrint, arg: 1, format: true},
		"io.WriteString": {kind: kindPrint, arg: 1},

		// These print through interfaces and fields.
		prefix + "packages/lock.candidate.tell":     {kind: kindPrint, format: true},
		prefix + "clusterctl/move.Progress.Say":     {kind: kindPrint, format: true},
		prefix + "packages/execute.Display.Infof":   {kind: kindPrint, format: true},
		prefix + "packages/execute.Display.Warnf":   {kind: kindPrint, format: true},
		prefix + "packages/execute.Display.Logf":    {kind: kindPrint, arg: 1, format: true},
		prefix + "packages/execute.board.set":       {kind: kindPrint, arg: 1},
		prefix + "packages/replace.Replacer.report": {kind: kindPrint, format: true},

		"net/http.Error":                       {kind: kindError, arg: 1},
		"google.golang.org/grpc/status.Error":  {kind: kindError, arg: 1},
		"google.golang.org/grpc/status.Errorf": {kind: kindError, arg: 1, format: true},
		admissionPackage + ".Denied":           {kind: kindError},

		"github.com/spf13/pflag.FlagSet.MarkDeprecated": {kind: kindFlag, arg: 1},
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
	const (
		cobra      = "github.com/spf13/cobra.Command."
		prometheus = "github.com/prometheus/client_golang/prometheus."
	)
	out := map[string]string{
		cobra + "Use": kindHelp, cobra + "Short": kindHelp, cobra + "Long": kindHelp, cobra + "Example": kindHelp,
		cobra + "Deprecated": kindHelp,

		"k8s.io/apimachinery/pkg/apis/meta/v1.Status.Message":      kindError,
		"k8s.io/apimachinery/pkg/apis/meta/v1.StatusCause.Message": kindError,
		prefix + "api/core/v1beta1.Condition.Message":              kindCondition,

		prometheus + "CounterOpts.Help": kindMetric, prometheus + "GaugeOpts.Help": kindMetric, prometheus + "HistogramOpts.Help": kindMetric,
	}
	for _, kind := range []string{"Cluster", "Machine", "MachineSet", "MachinePool"} {
		out[prefix+"api/core/v1beta1."+kind+"Status.FailureMessage"] = kindCondition
	}
	return out
}

// warnings is the type of the warnings that admission returns.
const warnings = admissionPackage + ".Warnings"
