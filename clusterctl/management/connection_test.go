package management

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

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

type tripper func() error

func (t tripper) RoundTrip(*http.Request) (*http.Response, error) { return nil, t() }

// failing returns the error of a request as a client gets it when the connection has this one.
func failing(err error) error {
	client := &http.Client{Transport: explaining{RoundTripper: tripper(func() error { return err }), host: "https://x:1"}}
	response, err := client.Get("https://x:1/api?timeout=30s")
	if response != nil {
		_ = response.Body.Close()
	}
	return fmt.Errorf("cannot read cluster c: failed to get server groups: %w", err)
}

func TestText(t *testing.T) {
	const check = ": check that it is running, and that --kubeconfig and --kubeconfig-context select the right cluster"
	tests := []struct {
		reason string
		err    error
		want   string
	}{
		{
			reason: "a refused connection is one sentence without the request",
			err:    failing(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}),
			want:   "cannot read cluster c: cannot reach the management cluster at https://x:1: connection refused" + check,
		},
		{
			reason: "an untrusted certificate means another cluster",
			err:    failing(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}),
			want:   "cannot read cluster c: cannot reach the management cluster at https://x:1: its certificate is not trusted by the kubeconfig (tls: failed to verify certificate: x509: certificate signed by unknown authority): the kubeconfig belongs to another cluster or is outdated: get a new one, or choose another one with --kubeconfig or --kubeconfig-context",
		},
		{
			reason: "an unknown host name is reported",
			err:    failing(&net.DNSError{Err: "no such host", Name: "x"}),
			want:   "cannot read cluster c: cannot reach the management cluster at https://x:1: its host name cannot be resolved (no such host)" + check,
		},
		{
			reason: "a timeout is reported",
			err:    failing(context.DeadlineExceeded),
			want:   "cannot read cluster c: cannot reach the management cluster at https://x:1: timeout (context deadline exceeded)" + check,
		},
		{
			reason: "other errors are returned unchanged",
			err:    failing(io.ErrUnexpectedEOF),
			want:   "cannot read cluster c: cannot reach the management cluster at https://x:1: unexpected EOF" + check,
		},
		{
			reason: "rejected credentials may have expired",
			err:    fmt.Errorf("cannot read cluster c: failed to get server groups: %w", apierrors.NewGenericServerResponse(http.StatusUnauthorized, "get", schema.GroupResource{}, "", "", 0, true)),
			want:   "cannot read cluster c: the management cluster rejected the kubeconfig's credentials, which may have expired: get a new kubeconfig, or choose another one with --kubeconfig",
		},
		{reason: "other errors are unchanged", err: errors.New(`GET "https://example.org": 404`), want: `GET "https://example.org": 404`},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Text(tc.err)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestConnectionErrorKeepsItsCause(t *testing.T) {
	refused := failing(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	if !utilnet.IsConnectionRefused(refused) {
		t.Error("a refused connection may succeed later, so it must not be permanent")
	}
	if err := failing(context.Canceled); !errors.Is(err, context.Canceled) || errors.As(err, new(*ConnectionError)) {
		t.Errorf("who ends a request needs no explanation, got %v", err)
	}
	if _, ok := errors.AsType[*url.Error](refused); !ok {
		t.Error("the chain of causes is kept")
	}
}
