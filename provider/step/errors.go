package step

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Terminal marks an error that trying again cannot mend: nothing happens until the object, or something
// that its controller watches, changes. Errors are transient unless marked.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return reconcile.TerminalError(err)
}

// isTerminal reports whether trying again mends nothing: of several errors, all must be terminal.
func isTerminal(err error) bool {
	if many, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // joined errors are taken apart here, one by one
		for _, e := range many.Unwrap() {
			if !isTerminal(e) {
				return false
			}
		}
		return true
	}
	return errors.Is(err, reconcile.TerminalError(nil))
}

// retriable hides the terminal errors among several, of which at least one is worth trying again.
func retriable(err error) error {
	if !errors.Is(err, reconcile.TerminalError(nil)) || isTerminal(err) {
		return err
	}
	return errors.New(err.Error())
}

// stale is an error that says that we acted on an old copy.
type stale struct{ what string }

// Error implements error.
func (s *stale) Error() string { return s.what }

// Stale is an error of a reconcile that acted on an old copy, or would have: it is retried with backoff, and only logged as an
// error when that does not end.
func Stale(format string, args ...any) error { return &stale{fmt.Sprintf(format, args...)} }

// IsStale reports whether an error only says that we acted on an old copy: Stale, a conflict, or the creation of
// something that is already there. The cache catches up and the reconcile runs again; nobody needs to read
// about it. Of several errors, all must be stale.
func IsStale(err error) bool {
	var old *stale
	switch many := err.(type) { //nolint:errorlint // joined errors are taken apart here, one by one
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
