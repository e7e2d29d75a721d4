package docker

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/engine"
)

// dialError is an error of connecting. Docker's client replaces most such errors by a text; this type survives it.
type dialError struct {
	text      string
	forbidden bool
}

// newDialError keeps of an error what classify needs. It does not wrap the error, because the client would recognize it.
func newDialError(err error) *dialError {
	text := err.Error()
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		text = number.Error()
	}
	return &dialError{text: text, forbidden: errors.Is(err, os.ErrPermission)}
}

// Error implements error.
func (e *dialError) Error() string { return e.text }

// timeoutError means that the runtime did not respond.
type timeoutError struct {
	host  string
	limit time.Duration
}

// Error implements error.
func (e *timeoutError) Error() string {
	return fmt.Sprintf("the container runtime at %s did not respond within %s", e.host, e.limit)
}

// classify returns an error as an *engine.Error. It returns nil for nil, and leaves errors that are classified already.
func (d *Docker) classify(attempt string, err error) error {
	if err == nil {
		return nil
	}
	if done := (*engine.Error)(nil); errors.As(err, &done) {
		return err
	}
	if exit := (*engine.ExitError)(nil); errors.As(err, &exit) {
		return err
	}
	reason, advice := d.reason(err)
	if advice != "" {
		err = fmt.Errorf("%w: %s", err, advice)
	}
	return &engine.Error{Reason: reason, Attempt: attempt, Err: err}
}

// reason returns the reason of an error, and what users can do. Some errors of Docker only differ in their text, which has been
// the same since its first releases.
func (d *Docker) reason(err error) (reason engine.Reason, advice string) {
	var (
		dial    *dialError
		timeout *timeoutError
		text    = err.Error()
	)
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
	switch {
	case errors.As(err, &dial) && dial.forbidden:
		return engine.Forbidden, fmt.Sprintf("give this process access to the socket %s, for example through its group", d.host)
	case errors.As(err, &dial), client.IsErrConnectionFailed(err):
		return engine.Unavailable, fmt.Sprintf("start the container runtime, or set DOCKER_HOST if it is not at %s", d.host)
	case errors.As(err, &timeout):
		return engine.Unavailable, ""
	case has("no space left on device"):
		return engine.NoSpace, "free space on the disk of the container runtime"
	case has("port is already allocated", "address already in use"):
		return engine.PortInUse, "stop the process that uses the port"
	case has("manifest unknown", "manifest for", "repository does not exist", "pull access denied"):
		return engine.NotFound, "check the name of the image, or import the image"
	case errdefs.IsNotFound(err):
		return engine.NotFound, ""
	case errdefs.IsConflict(err), errdefs.IsAlreadyExists(err):
		return engine.Conflict, ""
	case errdefs.IsPermissionDenied(err), errdefs.IsUnauthorized(err):
		return engine.Forbidden, ""
	case errdefs.IsInvalidArgument(err):
		return engine.Invalid, ""
	}
	return engine.Unknown, ""
}
