package step

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Terminal marks an error that retries cannot fix: the object is reconciled again when it, or something that its controller
// watches, changes. All other errors are retried.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return reconcile.TerminalError(err)
}

// isTerminal reports whether retries are useless. Of several errors, all must be terminal.
func isTerminal(err error) bool {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			if !isTerminal(e) {
				return false
			}
		}
		return true
	}
	return errors.Is(err, reconcile.TerminalError(nil))
}

// retriable makes several errors retriable if at least one of them is not terminal.
func retriable(err error) error {
	if !errors.Is(err, reconcile.TerminalError(nil)) || isTerminal(err) {
		return err
	}
	return errors.New(err.Error())
}

// stale is an error of a reconcile that worked with a stale cache.
type stale struct{ what string }

// Error implements error.
func (s *stale) Error() string { return s.what }

// Stale returns an error that means that the cache is stale. The reconcile is retried with backoff, and the error is only logged as
// such if that does not help.
func Stale(format string, args ...any) error { return &stale{fmt.Sprintf(format, args...)} }

// IsStale reports whether an error only means that the cache is stale: Stale, a conflict, or an object that already exists. Such
// errors are retried without being logged as errors. Of several errors, all must be stale.
func IsStale(err error) bool {
	var old *stale
	switch many := err.(type) { //nolint:errorlint // each of the joined errors is checked
	case interface{ Unwrap() []error }:
		return allStale(many.Unwrap())
	case interface{ Errors() []error }:
		return allStale(many.Errors())
	case interface{ Unwrap() error }:
		if inner := many.Unwrap(); inner != nil {
			return IsStale(inner)
		}
	}
	return errors.As(err, &old) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

func allStale(errs []error) bool {
	for _, err := range errs {
		if !IsStale(err) {
			return false
		}
	}
	return len(errs) > 0
}
