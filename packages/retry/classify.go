package retry

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/http2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Class is why a request failed, and so what a repetition can achieve.
type Class string

const (
	// Permanent means that the same request would fail again.
	Permanent Class = "Permanent"
	// Interrupted means that the connection failed: whether the API server has executed the request is unknown.
	Interrupted Class = "Interrupted"
	// Unavailable means that the API server, or a webhook that it calls, does not serve at the moment.
	Unavailable Class = "Unavailable"
	// Outdated means that an object, its namespace or its kind is not as the request expects: it passes if every attempt reads
	// them again.
	Outdated Class = "Outdated"
	// Denied means that a webhook denied the request: because the request is invalid, or because the webhook's cache is stale.
	Denied Class = "Denied"
)

// Classify returns why a request failed.
func Classify(err error) Class {
	var untrusted *tls.CertificateVerificationError
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.As(err, &untrusted), mistyped(err):
		return Permanent
	case unavailable(err):
		return Unavailable
	case strings.Contains(err.Error(), "admission webhook") && strings.Contains(err.Error(), "denied the request"):
		return Denied
	case outdated(err):
		return Outdated
	case interrupted(err):
		return Interrupted
	default:
		return Permanent
	}
}

// interrupted reports whether the connection failed. The deadline of a context on its own is the end of waiting, not of a
// connection; a request that it ends is a url.Error.
func interrupted(err error) bool {
	if _, responded := status(err); responded {
		return false // Its message may be about another connection.
	}
	var request *url.Error
	var stream http2.StreamError
	var timeout net.Error
	return errors.As(err, &request) || errors.As(err, &stream) || errors.Is(err, io.ErrUnexpectedEOF) ||
		utilnet.IsProbableEOF(err) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) ||
		errors.As(err, &timeout) && timeout.Timeout() && timeout != context.DeadlineExceeded //nolint:errorlint // Others are equal to it.
}

// mistyped reports whether a server-side apply was rejected because the object has unknown fields, or fields of other types than the
// schema has. API servers respond with an internal error to that.
func mistyped(err error) bool {
	_, responded := status(err)
	return responded && strings.Contains(err.Error(), "failed to create typed patch object")
}

// unavailable reports whether the API server responded that it does not serve. Internal errors include a webhook that does not
// respond, and every response from 500 on that is no Status, such as 502 of a load balancer whose API server restarts.
func unavailable(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

func outdated(err error) bool {
	switch {
	case meta.IsNoMatchError(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err),
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return true
	case apierrors.IsNotFound(err):
		// The kind is not served yet, or the object was deleted; but a missing namespace stays missing.
		status, ok := status(err)
		return !ok || status.Status().Details == nil || status.Status().Details.Kind != "namespaces"
	default:
		return false
	}
}

func status(err error) (apierrors.APIStatus, bool) {
	var status apierrors.APIStatus
	ok := errors.As(err, &status)
	return status, ok
}
