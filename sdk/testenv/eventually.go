package testenv

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// patience is many times what anything takes, so that tests pass on a loaded machine. The slowest is the deletion of a namespace: an
	// API server deletes kind after kind, and begins again, after a pause, until the finalizers of all objects are gone. On a loaded
	// machine, each of these rounds takes more than a minute.
	patience = 10 * time.Minute
	look     = 10 * time.Millisecond
)

// Eventually waits until check returns nil, and ends the test with the last error if that takes
// minutes. what describes what is waited for.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), look, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %v", what, err, last)
	}
}

// Must ends the test if there is an error.
func Must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
