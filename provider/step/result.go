package step

import (
	"cmp"
	"context"
	"errors"
	"time"
)

type consequence int

const (
	done consequence = iota
	checkpoint
	waiting
	stopped
)

// Result says what follows from a step, or from a whole reconcile. The zero value is Done.
type Result struct {
	consequence consequence
	what        string
	after       time.Duration
}

// Done goes on with the next step.
func Done() Result { return Result{} }

// Checkpoint goes on with the next step once metadata and spec, as they are in memory now, are in the API
// server. It costs nothing when they already are.
func Checkpoint() Result { return Result{consequence: checkpoint} }

// Wait ends the list: what follows cannot be done before something outside happens, and an event will wake
// us then. What is waited for is for people who read logs ("InMemoryMachine default/m1 to be ready").
func Wait(what string) Result { return Result{consequence: waiting, what: what} }

// WaitAtMost is Wait with a deadline, after which the reconcile runs again even without an event.
func WaitAtMost(d time.Duration, what string) Result {
	return Result{consequence: waiting, what: what, after: d}
}

// Stop ends the list: there is nothing more to do for this object.
func Stop() Result { return Result{consequence: stopped} }

// Again is Done, and the reconcile runs again after d even if no event comes: for facts that change with
// time alone, such as a certificate that expires.
func Again(d time.Duration) Result { return Result{after: d} }

// After is how long until the reconcile runs again on its own; zero means never.
func (r Result) After() time.Duration { return r.after }

// Waiting says what is waited for; empty when nothing is.
func (r Result) Waiting() string { return r.what }

// Ends reports whether the steps that follow are skipped.
func (r Result) Ends() bool { return r.consequence == waiting || r.consequence == stopped }

// soonest merges r into what earlier steps said: deadlines shrink, the latest consequence and reason stay.
func (r Result) soonest(earlier Result) Result {
	if r.after == 0 || (earlier.after != 0 && earlier.after < r.after) {
		r.after = earlier.after
	}
	r.what = cmp.Or(r.what, earlier.what)
	return r
}

// Func is one step over a scope S.
type Func[S any] func(ctx context.Context, s S) (Result, error)

// Run takes the steps in order, up to the first that fails, waits or stops. Deadlines of earlier steps are
// kept.
func Run[S any](ctx context.Context, s S, steps ...Func[S]) (Result, error) {
	var all Result
	for _, f := range steps {
		r, err := f(ctx, s)
		all = r.soonest(all)
		if err != nil || all.Ends() {
			return all, err
		}
		if all.consequence == checkpoint {
			all.consequence = done
			if err := save(ctx); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// All is a step that attempts every one of the steps, whatever the others say, and reports all their
// errors and the soonest deadline. It waits if one of them waits, and stops only if all of them stop.
func All[S any](steps ...Func[S]) Func[S] {
	return func(ctx context.Context, s S) (Result, error) {
		var (
			all  Result
			errs []error
		)
		for _, f := range steps {
			r, err := f(ctx, s)
			if r.consequence == checkpoint {
				err = errors.Join(err, save(ctx))
				r.consequence = done
			}
			if err != nil {
				errs = append(errs, err)
			}
			if r.consequence == waiting {
				all.consequence = waiting
			}
			all = Result{consequence: all.consequence, what: r.what, after: r.after}.soonest(all)
		}
		return all, errors.Join(errs...)
	}
}
