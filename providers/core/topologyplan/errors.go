package topologyplan

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
)

// RefusedError means that the validation of Clusters refuses the change.
type RefusedError struct{ Err error }

// Error implements error.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// ClassError means that the ClusterClass of a Cluster does not exist, or that its controller has not reconciled it.
type ClassError struct {
	// Missing is set if it does not exist.
	Missing bool
	Err     error
}

// Error implements error.
func (e *ClassError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ClassError) Unwrap() error { return e.Err }

// ExtensionError means that a runtime extension could not be called.
type ExtensionError struct{ Err error }

// Error implements error.
func (e *ExtensionError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ExtensionError) Unwrap() error { return e.Err }

// note records an error of live.
func (w *World) note(err error) {
	switch {
	case client.IgnoreNotFound(err) == nil:
	case apierrors.IsForbidden(err):
		w.denied, w.failed = err, err
	default:
		w.failed = err
	}
}

// refused returns the error of adding a Cluster: validation does not return why it could not read.
func (w *World) refused(err error) error {
	switch {
	case apierrors.IsInvalid(err):
		return &RefusedError{err}
	case w.failed != nil:
		return w.failed
	case apierrors.IsInternalError(err):
		return errors.New(err.Error()) // It is not from the API server, and trying again does not help.
	}
	return err
}

// typed makes errors of a planner those of this package.
func typed(err error) error {
	if class, ok := errors.AsType[*plan.ClassNotReconciledError](err); ok {
		return &ClassError{Missing: class.Missing, Err: err}
	}
	return err
}
