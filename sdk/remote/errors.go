package remote

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/sdk/condition"
)

// ErrNotConnected means that there is no connection to a workload cluster. It is being established
// in the background; a Source sends an event when the cluster is connected.
var ErrNotConnected = errors.New("not connected to the workload cluster")

// errConnecting is the cause of a NotConnectedError as long as connecting has not failed.
var errConnecting = errors.New("connecting")

// IsNotConnected reports whether an error means that there is no connection to a workload cluster.
func IsNotConnected(err error) bool { return errors.Is(err, ErrNotConnected) }

// IsConnecting reports whether an error means that there has been no attempt yet to connect to a workload cluster, or none since
// the connection was lost.
func IsConnecting(err error) bool { return errors.Is(err, errConnecting) }

// NotConnectedError is ErrNotConnected with the cluster and the reason.
type NotConnectedError struct {
	Cluster types.NamespacedName
	// Since is when this process lost the connection, or when it first called Get.
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

// DisconnectedSince returns NotConnectedError.Since of an error, if it has one.
func DisconnectedSince(err error) (time.Time, bool) {
	var away *NotConnectedError
	if !errors.As(err, &away) {
		return time.Time{}, false
	}
	return away.Since, true
}

// RejectedError means that the Policy does not allow what a kubeconfig or a workload cluster requires. It describes
// what was rejected, without quoting it.
type RejectedError struct {
	// What was rejected.
	What string
	// Allow is the value of --workload-cluster-allow that allows it. Empty: it cannot be allowed.
	Allow string
}

// Error implements error.
func (e *RejectedError) Error() string {
	if e.Allow == "" {
		return "rejected: " + e.What
	}
	return fmt.Sprintf("rejected: %s (only allowed with --%s=%s)", e.What, allowFlag, e.Allow)
}

// IsRejected reports whether an error is a RejectedError, or a violated limit: retries do not help
// until the kubeconfig or the workload cluster changes.
func IsRejected(err error) bool {
	var refused *RejectedError
	var limit *limitError
	return errors.As(err, &refused) || errors.As(err, &limit)
}

// limitError means that a workload cluster sent more than the limit.
type limitError struct {
	What  string
	Limit int64
}

// Error implements error.
func (e *limitError) Error() string {
	return fmt.Sprintf("rejected: %s of more than %s", e.What, resource.NewQuantity(e.Limit, resource.BinarySI))
}

// maxErrorText is the maximum length of connection errors, which end up in conditions.
const maxErrorText = 300

// Tidy returns an error with a text that can be shown: short, and without the response of a server, which may not be an API server.
func Tidy(err error) error {
	if err == nil {
		return nil
	}
	return &tidied{err: err, text: condition.Truncate(textOf(err), maxErrorText)}
}

type tidied struct {
	err  error
	text string
}

// Error implements error.
func (t *tidied) Error() string { return t.text }

// Unwrap returns the original error.
func (t *tidied) Unwrap() error { return t.err }

func textOf(err error) string {
	var refused *RejectedError
	var limit *limitError
	var status apierrors.APIStatus
	var request *url.Error
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &limit):
		return limit.Error()
	case errors.As(err, &status):
		return fmt.Sprintf("its API server responds with status %d %s", status.Status().Code, http.StatusText(int(status.Status().Code)))
	case errors.As(err, &request):
		err = request.Err
	}
	text := err.Error()
	// net/http quotes malformed responses.
	if before, _, malformed := strings.Cut(text, "malformed HTTP"); malformed {
		return before + "malformed HTTP response"
	}
	return text
}

// malformed wraps an error of reading JSON.
func malformed(err error) error {
	if err != nil {
		return fmt.Errorf("reading a list: %w", err)
	}
	return nil
}

const allowFlag = "workload-cluster-allow"
