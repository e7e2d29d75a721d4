package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

const (
	// maxTimeout bounds calls of handlers without a timeout. It is the longest timeout that a handler can set.
	maxTimeout = time.Duration(runtimehooksv1.MaxHandlersTimeoutSeconds) * time.Second
	// MaxResponse is the maximum size of a response in bytes. Patches of a large topology take one.
	MaxResponse = 20 << 20
)

// Options configure a Caller.
type Options struct {
	// UserAgent is sent with each request.
	UserAgent string
	// Metrics registers the metrics of calls.
	Metrics prometheus.Registerer
	// Dial opens connections. Nil: to the network.
	Dial DialFunc
	// Certificate returns the certificate that servers are shown if they ask for one. Nil: none.
	Certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	// Clock measures calls for metrics.
	Clock clock.PassiveClock
}

// Caller calls extensions. It is safe for concurrent use.
type Caller struct {
	userAgent  string
	transports *transports
	metrics    *metrics
	clock      clock.PassiveClock
}

// NewCaller returns a Caller.
func NewCaller(o Options) *Caller {
	return &Caller{userAgent: o.UserAgent, transports: newTransports(o.Dial, o.Certificate), metrics: newMetrics(o.Metrics), clock: o.Clock}
}

// CloseIdleConnections makes the next calls open connections, with the certificate that is the current one by then.
func (c *Caller) CloseIdleConnections() { c.transports.closeIdle() }

// Call is a call of one handler.
type Call struct {
	// Hook is the hook.
	Hook runtimecatalog.GroupVersionHook
	// Handler is the name of the handler on its server. Empty for the hook Discovery.
	Handler string
	// Timeout is the handler's timeout. Zero: the server is not told one, and the call ends after 30 seconds.
	Timeout time.Duration
}

// kind returns the kind of the hook's Request or Response.
func (c Call) kind(message string) schema.GroupVersionKind {
	return c.Hook.GroupVersion().WithKind(c.Hook.Hook + message)
}

// Post sets the kind of a request, sends it, and decodes the response into an empty object, which may be incomplete after an error.
// An *Error means that the server is unreachable or its response invalid. A response with status Failure is not an error.
func (c *Caller) Post(ctx context.Context, to Endpoint, call Call, request runtime.Object, response runtimehooksv1.ResponseObject) error {
	request.GetObjectKind().SetGroupVersionKind(call.kind("Request"))
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	transport, err := c.transports.of(to.authorities)
	if err != nil {
		return err
	}
	url := to.base.JoinPath(runtimecatalog.GVHToPath(call.Hook, call.Handler))
	bound := maxTimeout
	if call.Timeout > 0 {
		query := url.Query()
		query.Set("timeout", call.Timeout.String())
		url.RawQuery, bound = query.Encode(), call.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url.String(), bytes.NewReader(body))
	if err != nil {
		return failed("the URL is invalid", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", c.userAgent)
	begun := c.clock.Now()
	code, err := exchange(transport, r, call, response)
	c.metrics.called(url.Host, call.Hook, code, statusOf(response, err), c.clock.Since(begun))
	return err
}

// exchange sends a request and decodes the response. code is that of HTTP; empty if there was no response.
func exchange(transport http.RoundTripper, r *http.Request, call Call, response runtimehooksv1.ResponseObject) (code string, err error) {
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		return "", unreachable(err)
	}
	defer func() { _ = answer.Body.Close() }()
	code = strconv.Itoa(answer.StatusCode)
	if answer.StatusCode != http.StatusOK {
		return code, failed("the server answered "+inWords(answer.StatusCode), nil)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, MaxResponse+1))
	switch {
	case err != nil:
		return code, unreachable(err)
	case len(raw) > MaxResponse:
		return code, failed(fmt.Sprintf("the response is larger than %d MiB", MaxResponse>>20), nil)
	}
	return code, decode(raw, call.kind("Response"), response)
}

// inWords returns an HTTP status code in words, without what the server said.
func inWords(code int) string {
	if text := http.StatusText(code); text != "" {
		return strconv.Itoa(code) + " " + text
	}
	return strconv.Itoa(code)
}

// decode decodes a response. Extensions in other languages omit the kind, and the status of a success; both at the same time is not a
// response.
func decode(raw []byte, kind schema.GroupVersionKind, response runtimehooksv1.ResponseObject) error {
	if err := json.Unmarshal(raw, response); err != nil {
		return failed("the response is not a "+kind.Kind+" in JSON", err)
	}
	got, status := response.GetObjectKind().GroupVersionKind(), response.GetStatus()
	switch {
	case !got.Empty() && got != kind:
		return failed(fmt.Sprintf("the response must be of kind %s, version %s", kind.Kind, kind.GroupVersion()), fmt.Errorf("it is %s", got))
	case status != "" && status != runtimehooksv1.ResponseStatusSuccess && status != runtimehooksv1.ResponseStatusFailure:
		return failed("the status of the response must be Success or Failure", fmt.Errorf("it is %.20q", status))
	case got.Empty() && status == "":
		return failed("the response has neither a kind nor a status", nil)
	}
	if retry, ok := response.(runtimehooksv1.RetryResponseObject); ok && retry.GetRetryAfterSeconds() < 0 {
		return failed("retryAfterSeconds of the response must not be negative", nil)
	}
	return nil
}
