package remote

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// ErrNotConnected says that there is no connection to a workload cluster now. It is being made, or made
// again, in the background; a Source sends an event when it stands.
var ErrNotConnected = errors.New("not connected to the workload cluster")

// errConnecting is the cause of a NotConnectedError while nothing is known against the connection yet.
var errConnecting = errors.New("connecting")

// IsNotConnected reports whether an error only says that a workload cluster cannot be reached right now.
func IsNotConnected(err error) bool { return errors.Is(err, ErrNotConnected) }

// IsConnecting reports whether an error says that a workload cluster has not been tried yet, or not since
// its connection was lost.
func IsConnecting(err error) bool { return errors.Is(err, errConnecting) }

// NotConnectedError is ErrNotConnected for a certain cluster, with the reason.
type NotConnectedError struct {
	Cluster types.NamespacedName
	// Since is when this process last had a connection, or first wanted one.
	Since time.Time
	Cause error
}

// Error implements error.
func (e *NotConnectedError) Error() string {
	return fmt.Sprintf("%s %s: %s", ErrNotConnected, e.Cluster, e.Cause)
}

// Is makes it an ErrNotConnected.
func (e *NotConnectedError) Is(target error) bool { return target == ErrNotConnected }

// Unwrap returns the cause.
func (e *NotConnectedError) Unwrap() error { return e.Cause }

// DisconnectedSince is since when a workload cluster has been away, if an error says so.
func DisconnectedSince(err error) (time.Time, bool) {
	var away *NotConnectedError
	if !errors.As(err, &away) {
		return time.Time{}, false
	}
	return away.Since, true
}

// RefusedError says that the policy of this process forbids what a kubeconfig or a workload cluster asks for. It names
// what was refused and never quotes it.
type RefusedError struct {
	// What was refused.
	What string
	// Allow is the value of the flag that permits it. Empty: nothing does.
	Allow string
}

// Error implements error.
func (e *RefusedError) Error() string {
	if e.Allow == "" {
		return "refused: " + e.What
	}
	return fmt.Sprintf("refused: %s (permitted only by --%s=%s)", e.What, allowFlag, e.Allow)
}

// IsRefused reports whether an error comes from a RefusedError or a limitError: trying again does not help
// before the kubeconfig or the workload cluster is changed.
func IsRefused(err error) bool {
	var refused *RefusedError
	var limit *limitError
	return errors.As(err, &refused) || errors.As(err, &limit)
}

// limitError says that a workload cluster sent more than is read of one.
type limitError struct {
	What  string
	Limit int64
}

// Error implements error.
func (e *limitError) Error() string {
	return fmt.Sprintf("refused: %s of more than %d MiB", e.What, e.Limit>>20)
}

// maxErrorText bounds the text of errors of connections, which ends up in conditions.
const maxErrorText = 300

// tidy is an error whose text can be shown: short, and without what a server that need not be an API server answered.
func tidy(err error) error {
	if err == nil {
		return nil
	}
	return &tidied{err: err, text: shorten(textOf(err))}
}

type tidied struct {
	err  error
	text string
}

// Error implements error.
func (t *tidied) Error() string { return t.text }

// Unwrap returns the error as it came.
func (t *tidied) Unwrap() error { return t.err }

func textOf(err error) string {
	var refused *RefusedError
	var limit *limitError
	var status apierrors.APIStatus
	var request *url.Error
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &limit):
		return limit.Error()
	case errors.As(err, &status):
		return fmt.Sprintf("its API server answers with status %d %s", status.Status().Code, http.StatusText(int(status.Status().Code)))
	case errors.As(err, &request):
		err = request.Err
	}
	text := err.Error()
	// net/http quotes what it does not understand.
	if before, _, malformed := strings.Cut(text, "malformed HTTP"); malformed {
		return before + "malformed HTTP response"
	}
	return text
}

func shorten(text string) string {
	if len(text) <= maxErrorText {
		return strings.ToValidUTF8(text, "")
	}
	return strings.ToValidUTF8(text[:maxErrorText], "") + "..."
}
