// Package execute executes the plans of package choose: it installs and upgrades the providers of a management cluster.
//
// Objects are written by packages apply and replace. Executing a plan again completes an interrupted run.
package execute

// Display shows what is being done.
type Display interface {
	Infof(format string, args ...any)
	Warnf(format string, args ...any)
	// Logf is Infof for details that are only shown at a verbosity and above.
	Logf(verbosity int, format string, args ...any)
	// Lines shows one line per name, and returns a function that sets the state in one of them. It is called concurrently.
	Lines(names ...string) (set func(name, state string))
}

// board is what Display.Lines returns.
type board func(name, state string)

func (b board) set(name, state string) { b(name, state) }
