// Package preflight has the checks that must pass before a controller creates or deletes Machines.
//
// A check is a value with a name, so that all checks of an action are one list, which is read, tested, skipped and reported check
// by check. What is checked, and what follows from a failure, belongs in the package of the action.
package preflight

import "time"

// Check is a named check of what an action is based on.
type Check[T any] struct {
	// Name is the name under which failures are reported, and users may skip the check.
	Name string
	// Run returns the failures, nothing if the check passes. They need not have the name.
	Run func(T) []Failure
}

// Failure is a reason why a check does not pass.
type Failure struct {
	// Check is the name of the check.
	Check string
	// Machine is the name of the Machine that the failure is about, empty if it is not about a single one.
	Machine string
	// Reason describes in a few words what is wrong.
	Reason string
	// RetryAfter is when the check can pass without an event. Zero means that only an event can change its result.
	RetryAfter time.Duration
	// Err is why the check could not be made. There is no reason then.
	Err error
}

// All runs all checks, and returns their failures in the order of the checks.
func All[T any](checks []Check[T], of T) []Failure {
	var failures []Failure
	for _, check := range checks {
		failures = append(failures, check.run(of)...)
	}
	return failures
}

// First runs the checks until one fails, and returns its first failure, nil if all pass.
func First[T any](checks []Check[T], of T) *Failure {
	for _, check := range checks {
		if failures := check.run(of); len(failures) > 0 {
			return &failures[0]
		}
	}
	return nil
}

func (c Check[T]) run(of T) []Failure {
	failures := c.Run(of)
	for i := range failures {
		failures[i].Check = c.Name
	}
	return failures
}

// Because returns a failure with this reason.
func Because(reason string) []Failure { return []Failure{{Reason: reason}} }

// String returns the failure as text for messages.
func (f Failure) String() string {
	if f.Machine == "" {
		return f.Reason
	}
	return "Machine " + f.Machine + ": " + f.Reason
}
