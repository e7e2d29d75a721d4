package management

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ConnectionError is why a request to a management cluster failed, with what to do about it.
type ConnectionError struct {
	// Host is the API server's URL.
	Host string
	Err  error
}

// Error returns why the request failed, and what to do.
func (e *ConnectionError) Error() string {
	why, remedy := e.explain()
	return fmt.Sprintf("cannot reach the management cluster at %s: %s: %s", e.Host, why, remedy)
}

// Unwrap returns the cause.
func (e *ConnectionError) Unwrap() error { return e.Err }

func (e *ConnectionError) explain() (why, remedy string) {
	var unresolved *net.DNSError
	var timeout net.Error
	switch {
	case e.Permanent():
		return "its certificate is not trusted by the kubeconfig (" + e.Err.Error() + ")",
			"the kubeconfig belongs to another cluster or is outdated: " +
				"get a new one, or choose another one with --kubeconfig or --kubeconfig-context"
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		why = "connection refused"
	case errors.As(e.Err, &unresolved):
		why = "its host name cannot be resolved (" + unresolved.Err + ")"
	case errors.As(e.Err, &timeout) && timeout.Timeout():
		why = "timeout (" + e.Err.Error() + ")"
	default:
		why = e.Err.Error()
	}
	return why, "check that it is running, and that --kubeconfig and --kubeconfig-context select the right cluster"
}

// Permanent reports that a retry does not help.
func (e *ConnectionError) Permanent() bool {
	var untrusted *tls.CertificateVerificationError
	return errors.As(e.Err, &untrusted)
}

// explaining turns transport errors into ConnectionErrors.
type explaining struct {
	http.RoundTripper
	host string
}

// RoundTrip makes a request.
func (t explaining) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if err != nil && !errors.Is(err, context.Canceled) {
		err = &ConnectionError{Host: t.host, Err: err}
	}
	return response, err
}

// WrappedRoundTripper returns the next transport, for libraries that look for the connections of a request, to cancel it.
func (t explaining) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// request matches the failed request in libraries' errors, which means nothing to users.
var request = regexp.MustCompile(`(failed to get server groups: )?([A-Z][a-z]+ "https?://[^"]*": )?`)

const unauthorized = "the server has asked for the client to provide credentials"

// Text formats an error for users: without the failed request if the connection failed, and with what to do about
// rejected credentials.
func Text(err error) string {
	text := err.Error()
	var connection *ConnectionError
	switch {
	case errors.As(err, &connection):
		context, rest, found := strings.Cut(text, connection.Error())
		if !found {
			return text
		}
		return request.ReplaceAllString(context, "") + connection.Error() + rest
	case apierrors.IsUnauthorized(err):
		context, rest, found := strings.Cut(text, unauthorized)
		if !found {
			return text
		}
		return request.ReplaceAllString(context, "") + "the management cluster rejected the kubeconfig's credentials, " +
			"which may have expired: get a new kubeconfig, or choose another one with --kubeconfig" + rest
	default:
		return text
	}
}
