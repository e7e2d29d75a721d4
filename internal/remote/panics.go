package remote

import (
	"fmt"
	"runtime/debug"

	ctrl "sigs.k8s.io/controller-runtime"
)

// recovered calls f and makes a panic of it into an error: what happens with one workload cluster must not end the
// connections to all others.
func recovered(f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %T", cause) // The value could quote what a workload cluster sent.
			ctrl.Log.WithName("remote").Error(err, "Panic while working with a workload cluster", "stack", string(debug.Stack()))
		}
	}()
	return f()
}
