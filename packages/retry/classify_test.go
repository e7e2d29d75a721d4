package retry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"

	"golang.org/x/net/http2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	configMaps = corev1.Resource("configmaps")
	reset      = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	refused    = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
)

// posting is an error as net/http returns it for a request.
func posting(err error) error { return &url.Error{Op: "Post", URL: "https://x", Err: err} }

// response is a response that is no Status, such as one of a load balancer.
func response(code, retryAfter int) error {
	return apierrors.NewGenericServerResponse(code, "post", configMaps, "c", "", retryAfter, true)
}

// deniedWith is a response of a webhook.
func deniedWith(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "v.x.io" denied the request: spec.a is immutable`,
	}}
}

func TestClassify(t *testing.T) {
	namespace := apierrors.NewNotFound(corev1.Resource("namespaces"), "n")
	namespace.ErrStatus.Details.Kind = "namespaces"
	terminating := apierrors.NewForbidden(configMaps, "c", errors.New("namespace n is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	unavailableWebhook := errors.New(`failed calling webhook "v.x.io": failed to call webhook: Post "https://s.n.svc:443/validate": dial tcp 10.0.0.1:443: connect: connection refused`)
	tests := []struct {
		name string
		err  error
		want Class
	}{
		{"no error", nil, Permanent},
		{"an unknown error", errors.New("x"), Permanent},

		{"EOF", posting(io.EOF), Interrupted},
		{"EOF in the middle of a response", fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), Interrupted},
		{"connection refused", posting(refused), Interrupted},
		{"connection refused, without a request", refused, Interrupted},
		{"connection reset", posting(reset), Interrupted},
		{"connection reset in the middle of a response", fmt.Errorf("unexpected error when reading response body: %w", reset), Interrupted},
		{"a stream that ends", http2.StreamError{Code: http2.ErrCodeInternal}, Interrupted},
		{"GOAWAY", posting(errors.New("http2: server sent GOAWAY and closed the connection")), Interrupted},
		{"a host name that does not resolve", posting(&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}), Interrupted},
		{"a certificate that is not trusted", posting(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), Permanent},

		{"a timeout of a request", posting(context.DeadlineExceeded), Interrupted},
		{"a timeout of a connection", &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, Interrupted},
		{"a timeout in the API server", apierrors.NewTimeoutError("x", 0), Unavailable},
		{"a timeout of the API server", apierrors.NewServerTimeout(configMaps, "post", 1), Unavailable},
		{"the end of waiting", fmt.Errorf("it remains: %w", context.DeadlineExceeded), Permanent},
		{"an interruption by the user", posting(context.Canceled), Permanent},
		{"an interruption by the user, without a request", context.Canceled, Permanent},

		{"429", apierrors.NewTooManyRequestsError("x"), Unavailable},
		{"429 with RetryAfter", apierrors.NewTooManyRequests("x", 5), Unavailable},
		{"429 of a load balancer", response(http.StatusTooManyRequests, 0), Unavailable},
		{"500", apierrors.NewInternalError(errors.New("etcdserver: no leader")), Unavailable},
		{"500 of a load balancer", response(http.StatusInternalServerError, 0), Unavailable},
		{"502 of a load balancer", response(http.StatusBadGateway, 0), Unavailable},
		{"503", apierrors.NewServiceUnavailable("x"), Unavailable},
		{"503 of a load balancer", response(http.StatusServiceUnavailable, 0), Unavailable},
		{"504 of a load balancer", response(http.StatusGatewayTimeout, 0), Unavailable},

		{"a webhook that does not respond", apierrors.NewInternalError(unavailableWebhook), Unavailable},
		{"a webhook that fails", deniedWith(http.StatusInternalServerError, metav1.StatusReasonInternalError), Unavailable},
		{"a denial", deniedWith(http.StatusForbidden, metav1.StatusReasonForbidden), Denied},
		{"a denial as invalid", deniedWith(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid), Denied},

		{"a conflict", apierrors.NewConflict(configMaps, "c", errors.New("changed")), Outdated},
		{"an object that exists", apierrors.NewAlreadyExists(configMaps, "c"), Outdated},
		{"an object that does not exist", apierrors.NewNotFound(configMaps, "c"), Outdated},
		{"a kind that is not served", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "K"}}, Outdated},
		{"a namespace that is being deleted", terminating, Outdated},
		{"a namespace that does not exist", namespace, Permanent},

		{"fields of the wrong type, applied", &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "failed to create typed patch object (ns/c; cluster.x-k8s.io/v1beta1, Kind=Cluster): .spec.paused: expected boolean, got 1",
		}}, Permanent},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "c", nil), Permanent},
		{"a bad request about a connection", apierrors.NewBadRequest("the file says: connection reset by peer"), Permanent},
		{"unauthorized", apierrors.NewUnauthorized("x"), Permanent},
		{"forbidden", apierrors.NewForbidden(configMaps, "c", errors.New("no")), Permanent},
		{"expired", apierrors.NewResourceExpired("x"), Permanent},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := Classify(tc.err); got != tc.want {
				t.Errorf("Classify(%v) = %s, want %s", tc.err, got, tc.want)
			}
			if wrapped := fmt.Errorf("cannot write it: %w", tc.err); tc.err != nil && Classify(wrapped) != tc.want {
				t.Errorf("Classify(%v) = %s, want %s", wrapped, Classify(wrapped), tc.want)
			}
		})
	}
}
