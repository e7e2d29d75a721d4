package step

import (
	"context"
	"fmt"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// panicReason is the reason of conditions and events that report a panic.
const panicReason = "ReconcilePanicked"

// contained calls f, and turns a panic into an error, with an event. Without that, the panic would skip all other steps and their
// changes, and only the log would show it, although the object may panic with each retry. The backoff limits these.
func contained(ctx context.Context, what string, f func() (Result, error)) (Result, error) {
	var (
		result   Result
		err      error
		returned bool
	)
	func() {
		defer failsafe.Recover(what, &err)
		result, err = f()
		returned = true
	}()
	if returned {
		return result, err
	}
	err = fmt.Errorf("%w; this is a bug, and is retried", err)
	Warning(ctx, panicReason, "%v", err)
	return Result{}, &Error{Reason: panicReason, Err: err}
}
