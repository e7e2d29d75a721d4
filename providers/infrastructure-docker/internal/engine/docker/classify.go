package docker

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// registryAdvice is what users can do if an image cannot be pulled.
const registryAdvice = "check its name, give the container runtime access to the registry, or load the image into the container runtime"

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
	err = &presentable{err}
	if advice != "" {
		err = fmt.Errorf("%w: %s", err, advice)
	}
	return &engine.Error{Reason: reason, Attempt: attempt, Err: err}
}

// maxText is the maximum length of an error's text. Registries and containers determine parts of it.
const maxText = 400

// presentable is an error of the runtime whose text can be a message of a condition: it is one line, it does not change with every
// attempt, and its length is limited.
type presentable struct{ err error }

// Error implements error.
func (p *presentable) Error() string {
	if dial := (*dialError)(nil); errors.As(p.err, &dial) {
		return "cannot connect to the container runtime: " + dial.text // The rest is the URL of the request.
	}
	text := strings.Join(strings.Fields(p.err.Error()), " ")
	text = strings.TrimPrefix(text, "Error response from daemon: ")
	// The runtime's own port in a connection, as in "read udp 10.0.0.2:51234->10.0.0.1:53", differs each time.
	text = regexp.MustCompile(`\S+:\d+->`).ReplaceAllString(text, "")
	return condition.Truncate(text, maxText)
}

// Unwrap returns the error.
func (p *presentable) Unwrap() error { return p.err }

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
		return engine.NotFound, registryAdvice
	case errdefs.IsNotFound(err), has("image not known", "network not found"): // The latter are Podman's.
		return engine.NotFound, ""
	case errdefs.IsConflict(err), errdefs.IsAlreadyExists(err), has("that name is already in use", "container state improper"): // As above.
		return engine.Conflict, ""
	case errdefs.IsPermissionDenied(err), errdefs.IsUnauthorized(err):
		return engine.Forbidden, ""
	case errdefs.IsInvalidArgument(err):
		return engine.Invalid, ""
	}
	return engine.Unknown, ""
}
