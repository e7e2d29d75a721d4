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

// ConnectionError is why a request to a management cluster has no answer, with words that say what to do.
type ConnectionError struct {
	// Host is the API server's URL.
	Host string
	Err  error
}

// Error says what kept the request from being answered, and what to do.
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
		return "its certificate is not one that the kubeconfig trusts (" + e.Err.Error() + ")",
			"the kubeconfig is of another cluster or out of date: get a new one, or choose another one with --kubeconfig or --kubeconfig-context"
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		why = "nothing listens there (connection refused)"
	case errors.As(e.Err, &unresolved):
		why = "its name cannot be resolved (" + unresolved.Err + ")"
	case errors.As(e.Err, &timeout) && timeout.Timeout():
		why = "no answer in time (" + e.Err.Error() + ")"
	default:
		why = e.Err.Error()
	}
	return why, "check that it runs, and which cluster --kubeconfig and --kubeconfig-context select"
}

// Permanent tells that trying again does not help.
func (e *ConnectionError) Permanent() bool {
	var untrusted *tls.CertificateVerificationError
	return errors.As(e.Err, &untrusted)
}

// explaining makes ConnectionErrors of what goes wrong on the way to the API server.
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

// request is how libraries name the request that failed, of which a user knows nothing.
var request = regexp.MustCompile(`(failed to get server groups: )?([A-Z][a-z]+ "https?://[^"]*": )?`)

const unauthorized = "the server has asked for the client to provide credentials"

// Text returns an error as users are told it: without the requests that failed where the connection did, and with what to
// do about credentials that are not accepted.
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
		return request.ReplaceAllString(context, "") + "the management cluster does not accept the credentials of the kubeconfig, which may have expired: get a new one, or choose another one with --kubeconfig" + rest
	default:
		return text
	}
}
