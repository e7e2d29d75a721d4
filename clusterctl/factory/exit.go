package factory

import "errors"

// Exit codes of clusterctl other than 0 and 1, for scripts.
const (
	// ExitChanges: with --exit-code, there is something to change, or the Cluster is changing.
	ExitChanges = 2
	// ExitBlocked: with --exit-code, the Cluster waits for a user or another program.
	ExitBlocked = 3
	// ExitTimeout: what a command waits for has not happened before its --timeout. timeout(1) has the same code.
	ExitTimeout = 124
)

type exitError struct {
	error
	code int
	// answer: the command has done what it was asked for, and the code is its answer.
	answer bool
}

func (e *exitError) Unwrap() error { return e.error }

// WithExitCode makes ExitCode return a code for an error.
func WithExitCode(err error, code int) error { return &exitError{error: err, code: code} }

// WithAnswer is WithExitCode for the code that a user has asked for with --exit-code: the output says the rest, so that the error is not
// printed.
func WithAnswer(err error, code int) error { return &exitError{error: err, code: code, answer: true} }

// IsAnswer reports whether an error is from WithAnswer.
func IsAnswer(err error) bool {
	coded, ok := errors.AsType[*exitError](err)
	return ok && coded.answer
}

// ExitCode returns the exit code of a program that ends with an error: 0 for nil, and 1 unless WithExitCode says otherwise.
func ExitCode(err error) int {
	if coded, ok := errors.AsType[*exitError](err); ok {
		return coded.code
	}
	if err != nil {
		return 1
	}
	return 0
}
