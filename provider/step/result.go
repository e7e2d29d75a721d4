package step

import (
	"cmp"
	"time"
)

type consequence int

const (
	done consequence = iota
	checkpoint
	awaiting
	stopped
)

// Result says what follows from a step, or from a whole reconcile. The zero value is Done.
type Result struct {
	consequence consequence
	what        string
	after       time.Duration
	fact        fact
}

// Done goes on with the next step.
func Done() Result { return Result{} }

// Checkpoint goes on with the next step once metadata and spec, as they are in memory now, are in the API
// server. It costs nothing when they already are.
func Checkpoint() Result { return Result{consequence: checkpoint} }

// Wait ends the list: what follows cannot be done before something outside happens, and an event will wake
// us then. What is waited for ("InMemoryMachine m1 to be ready") goes into logs and, with Because, into the step's condition.
func Wait(what string) Result { return Result{consequence: awaiting, what: what} }

// WaitAtMost is Wait with a deadline, after which the reconcile runs again even without an event.
func WaitAtMost(d time.Duration, what string) Result {
	return Result{consequence: awaiting, what: what, after: d}
}

// Stop ends the list: there is nothing more to do for this object.
func Stop() Result { return Result{consequence: stopped} }

// Again is Done, and the reconcile runs again after d even if no event comes: for facts that change with
// time alone, such as a certificate that expires.
func Again(d time.Duration) Result { return Result{after: d} }

// WithOutcome is what r says of the step's condition, with the consequence of another result.
func (r Result) WithOutcome(other Result) Result {
	other.fact = r.fact
	return other
}

// After is how long until the reconcile runs again on its own; zero means never.
func (r Result) After() time.Duration { return r.after }

// Waiting says what is waited for; empty when nothing is.
func (r Result) Waiting() string { return r.what }

// Ends reports whether the steps that follow are skipped.
func (r Result) Ends() bool { return r.consequence == awaiting || r.consequence == stopped }

// soonest merges r into what earlier steps said: deadlines shrink, the latest consequence and reason stay.
func (r Result) soonest(earlier Result) Result {
	if r.after == 0 || (earlier.after != 0 && earlier.after < r.after) {
		r.after = earlier.after
	}
	r.what = cmp.Or(r.what, earlier.what)
	return r
}

// passed is a result whose checkpoint is over and whose facts are stated.
func (r Result) passed() Result {
	if r.consequence == checkpoint {
		r.consequence = done
	}
	r.fact = fact{}
	return r
}
