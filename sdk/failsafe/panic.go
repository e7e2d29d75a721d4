package failsafe

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// Contain makes client-go, and everything else that uses utilruntime.HandleCrash, log a panic and end or continue its goroutine,
// instead of panicking again. The next event of the object, or the next resync, compensates for a skipped event. Call it first
// in main functions: the setting is global in the process.
//
// An HTTP handler that panics with http.ErrAbortHandler still aborts its connection. Otherwise the client would mistake what
// it has received for a complete response.
func Contain() {
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, abort)
}

// abort panics again for the panic that net/http handles itself.
func abort(_ context.Context, value any) {
	if value == http.ErrAbortHandler { //nolint:errorlint // net/http compares it in the same way
		panic(value)
	}
}

// Recover turns a panic into an error and logs its stack. It must be deferred. doing describes the call, such as "parsing the
// Corefile". Of values that are not errors of the Go runtime, only the type is reported: they may quote the input.
func Recover(doing string, err *error) {
	value := recover()
	if value == nil {
		return
	}
	what := fmt.Sprintf("%T", value)
	if failure, ok := value.(runtime.Error); ok {
		what = failure.Error()
	}
	*err = fmt.Errorf("%s panicked: %s", doing, what)
	klog.Background().Error(*err, "Recovered from a panic", "stack", string(debug.Stack()))
}
