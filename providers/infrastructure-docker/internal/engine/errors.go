package engine

import (
	"errors"
	"fmt"
)

// Reason classifies an error by what follows from it.
type Reason string

// The reasons of errors.
const (
	// NotFound means that the container or image does not exist.
	NotFound Reason = "NotFound"
	// Conflict means that a container of this name exists, or that its state does not allow the request.
	Conflict Reason = "Conflict"
	// Unavailable means that the runtime does not respond, or that it is not running.
	Unavailable Reason = "Unavailable"
	// Forbidden means that the socket of the runtime, or the registry, denies access.
	Forbidden Reason = "Forbidden"
	// PortInUse means that a port to publish is in use on the host.
	PortInUse Reason = "PortInUse"
	// NoSpace means that the disk of the runtime is full.
	NoSpace Reason = "NoSpace"
	// Invalid means that the request can never succeed, for example because of a malformed image reference.
	Invalid Reason = "Invalid"
	// Unknown is every other error.
	Unknown Reason = "Unknown"
)

// Error is an error of the container runtime.
type Error struct {
	// Reason classifies the error.
	Reason Reason
	// Attempt is what was attempted, with its object, such as `cannot create container "c1"`.
	Attempt string
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Attempt, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ReasonFor returns the reason of an error, Unknown if it has none.
func ReasonFor(err error) Reason {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Reason
	}
	return Unknown
}

// IsNotFound reports whether a container or image does not exist.
func IsNotFound(err error) bool { return ReasonFor(err) == NotFound }

// IsConflict reports whether a container of the name exists, or its state does not allow the request.
func IsConflict(err error) bool { return ReasonFor(err) == Conflict }

// IsUnavailable reports whether the runtime does not respond.
func IsUnavailable(err error) bool { return ReasonFor(err) == Unavailable }

// ExitError reports that a command in a container exited with a code other than 0.
type ExitError struct {
	// Container is the name of the container.
	Container string
	// Program is the first element of the command. Its arguments are left out: they may be secret.
	Program string
	// Code is the exit code.
	Code int
	// Output is the end of the standard output and error, at most OutputLimit bytes. It may contain secrets.
	Output string
}

// Error implements error. It does not include the output.
func (e *ExitError) Error() string {
	return fmt.Sprintf("command %q in container %q failed with exit code %d", e.Program, e.Container, e.Code)
}
