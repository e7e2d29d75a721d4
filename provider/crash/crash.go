// Package crash keeps a panic in one goroutine from ending the process, and everybody else's work with it.
//
// controller-runtime recovers from panics of reconciles and webhooks by itself. For the rest there is, per process, Contain,
// and, per call, Recover, for goroutines of our own and for code that is given hostile input.
//
// Contain covers goroutines of the Kubernetes libraries that end with utilruntime.HandleCrash: event handlers (with mapping
// functions and predicates), decoders of watches and lists, informers, work queues, loops of package wait, event recorders and,
// in capi, the handlers of the API server. What goes on afterwards depends on the goroutine: the next event, the next turn of a
// loop, a new watch. It does not cover goroutines without HandleCrash: those of net/http, HTTP/2, gRPC and etcd, and callbacks
// that they run, such as resolvers and proxies; goroutines of golang.org/x/sync/errgroup, which hand a panic on; and fatal
// errors of the Go runtime (concurrent map writes, stack overflow, out of memory), which nothing can recover from. These end
// the process. Input is bounded for the last kind.
//
// What does not belong here: deciding what follows from an error.
package crash

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// Contain has client-go, and everything else that uses utilruntime.HandleCrash, log a panic and let its goroutine end or go on,
// instead of panicking again. What a skipped event would have led to happens with the next event of the object, or the next
// resync. It is for main functions, before anything else runs: the setting is of the whole process.
//
// An HTTP handler that panics with http.ErrAbortHandler still breaks its connection off. The client would otherwise take what it
// has received for a whole response.
func Contain() {
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, abort)
}

// abort hands the panic on that net/http is waiting for.
func abort(_ context.Context, value any) {
	if value == http.ErrAbortHandler { //nolint:errorlint // net/http compares it in the same way
		panic(value)
	}
}

// Recover makes a panic an error and logs its stack; it has to be deferred. Doing says what panicked, such as "parsing the Corefile". Of
// the value, error and log have the text only if it is the Go runtime's; another one may quote what it worked on, so its type
// has to do.
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
