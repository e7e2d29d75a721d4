// Package crash keeps a panic in one goroutine from ending the process, and everybody else's work with it.
//
// controller-runtime recovers from panics of reconciles and webhooks by itself. For the rest there is, per process, Contain,
// which covers the handlers of events (mapping functions and predicates among them), and, per call, Caught, for goroutines
// of our own and for code that is given hostile input. What does not belong here: deciding what follows from an error.
package crash

import (
	"fmt"
	"runtime/debug"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Contain has client-go log a panic in a handler of events, skip that event and go on with the next one, instead of
// panicking again. What the event would have led to happens with the next event of the object, or the next resync. It is
// for main functions, before anything else runs: the setting is of the whole process.
func Contain() { utilruntime.ReallyCrash = false }

// Error says that what was called has panicked. Its text names what it was and the value of the panic.
type Error struct {
	what  string
	value any
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: panic: %v", e.what, e.value) }

// Caught calls f, in the same goroutine, and returns its error. A panic is logged with its stack and becomes an *Error; what
// tells what was being done.
func Caught(log logr.Logger, what string, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{what: what, value: value}
			log.Error(err, "Recovered from a panic", "stack", string(debug.Stack()))
		}
	}()
	return f()
}
