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

// Result is what follows from a step, or from a whole reconcile. The zero value is Done.
type Result struct {
	consequence consequence
	what        string
	after       time.Duration
	statement   statement
}

// Done continues with the next step.
func Done() Result { return Result{} }

// Checkpoint continues with the next step once the metadata and spec in memory are written to the API server. It costs nothing
// if they already are.
func Checkpoint() Result { return Result{consequence: checkpoint} }

// Wait skips the following steps until an event triggers the next reconcile. What is waited for ("InMemoryMachine m1 to be ready")
// appears in logs and, with Because, in the step's condition.
func Wait(what string) Result { return Result{consequence: awaiting, what: what} }

// WaitAtMost is Wait with a deadline, after which the object is reconciled even without an event.
func WaitAtMost(d time.Duration, what string) Result {
	return Result{consequence: awaiting, what: what, after: d}
}

// Stop skips the following steps: there is nothing left to do for this object.
func Stop() Result { return Result{consequence: stopped} }

// Again is Done, and the object is reconciled again after d even without an event: for facts that change with time, such as the
// expiry of a certificate.
func Again(d time.Duration) Result { return Result{after: d} }

// WithOutcome returns other with the conditions of r.
func (r Result) WithOutcome(other Result) Result {
	other.statement = r.statement
	return other
}

// After returns the time until the object is reconciled again without an event. Zero means never.
func (r Result) After() time.Duration { return r.after }

// Waiting returns what is waited for; empty if nothing is.
func (r Result) Waiting() string { return r.what }

// Ends reports whether the steps that follow are skipped.
func (r Result) Ends() bool { return r.consequence == awaiting || r.consequence == stopped }

// merge merges r into the result of earlier steps: the earlier deadline and the later consequence win.
func (r Result) merge(earlier Result) Result {
	if r.after == 0 || (earlier.after != 0 && earlier.after < r.after) {
		r.after = earlier.after
	}
	r.what = cmp.Or(r.what, earlier.what)
	return r
}

// completed returns r after its checkpoint was written and its conditions were set.
func (r Result) completed() Result {
	if r.consequence == checkpoint {
		r.consequence = done
	}
	r.statement = statement{}
	return r
}
