package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"

	"sigs.k8s.io/cluster-api/sdk/condition"
)

// maxDetail is the maximum size of what is logged of a failed call, in bytes: it may quote the response.
const maxDetail = 500

// Error is a failed call: the server is unreachable, or its response is invalid. The failure policy of handlers is about these errors.
type Error struct {
	text  string
	cause error
}

// Error implements error. The text can be shown in conditions.
func (e *Error) Error() string { return e.text }

// Detail returns the text with its cause, for logs: it may have addresses and times, and quote the response.
func (e *Error) Detail() string {
	if e.cause == nil {
		return e.text
	}
	return condition.Truncate(fmt.Sprintf("%s: %v", e.text, e.cause), maxDetail)
}

// Timeout reports whether the server has not responded in time.
func (e *Error) Timeout() bool { return e.cause != nil && isTimeout(e.cause) }

func failed(text string, cause error) *Error { return &Error{text: text, cause: cause} }

// unreachable returns the error of a request without a complete response.
func unreachable(err error) *Error { return failed(why(err), err) }

// why returns a reason that is the same for each attempt. Texts of the errors have addresses, ports and times.
func why(err error) string {
	var (
		resolution *net.DNSError
		alert      tls.AlertError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "the call was canceled"
	case isTimeout(err):
		return "the server did not respond in time"
	case errors.As(err, &resolution):
		return "the host name of the server cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the server refused the connection"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "the host of the server is unreachable"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &tls.RecordHeaderError{}):
		return "the server does not use TLS"
	case errors.As(err, &alert):
		return "the server rejected the TLS handshake"
	}
	if text := distrust(err); text != "" {
		return text
	}
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the server closed the connection"
	}
	return "the connection to the server failed"
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// distrust returns why a certificate is not trusted; empty if that is not the problem.
func distrust(err error) string {
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		other    *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &unknown):
		return "the certificate of the server is not signed by a CA of spec.clientConfig.caBundle"
	case errors.As(err, &hostname):
		return "the certificate of the server is not valid for its host name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate of the server has expired, or is not yet valid"
	case errors.As(err, &other):
		return "the certificate of the server is invalid"
	}
	return ""
}
