// Package readonly makes clients of API servers that only read. It is where the promise is kept that a check changes nothing in the
// clusters of a user: whatever a client tries, only requests that read leave the process. What is read does not belong here.
package readonly

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Config returns a copy of a configuration whose clients only read.
func Config(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &Transport{Next: next} })
	return config
}

// Transport sends requests that read, and answers all others itself, with status 403. Those that connect to what is behind an API server
// fail: libraries that upgrade connections expect that an answer comes with one.
type Transport struct {
	// Next sends the requests that read.
	Next http.RoundTripper
	// Refused is called for every request that is not sent. Nil: nothing is.
	Refused func(*http.Request)
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if Reads(r) {
		return t.Next.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close() // It was not read, and RoundTrippers must close it.
	}
	if t.Refused != nil {
		t.Refused(r)
	}
	if connects(r) {
		return nil, fmt.Errorf("%w: %s %s", ErrRefused, r.Method, r.URL.Path)
	}
	return refusal(r)
}

// ErrRefused is the error of requests that connect to what is behind an API server.
var ErrRefused = errors.New("only reading, so that this request is not sent")

// WrappedRoundTripper returns the next transport, for libraries that look for connections to close.
func (t *Transport) WrappedRoundTripper() http.RoundTripper { return t.Next }

// connecting are the subresources of connected that connect to Pods, Nodes and Services, where a GET can change anything.
var (
	connecting = []string{"attach", "exec", "portforward", "proxy"} // constant lists
	connected  = []string{"pods", "services", "nodes"}
)

// Reads reports whether a request only reads: it is a GET, does not upgrade the connection, and does not connect to anything behind the API
// server.
func Reads(r *http.Request) bool {
	return r.Method == http.MethodGet && (r.Body == nil || r.Body == http.NoBody) && !connects(r)
}

// connects reports whether a request connects to what is behind the API server, or upgrades the connection.
func connects(r *http.Request) bool {
	if r.Header.Get("Upgrade") != "" {
		return true
	}
	parts := strings.Split(r.URL.Path, "/")
	for i := 2; i < len(parts); i++ {
		if slices.Contains(connecting, parts[i]) && slices.Contains(connected, parts[i-2]) {
			return true
		}
	}
	return false
}

// refusal is the answer to a request that is not sent.
func refusal(r *http.Request) (*http.Response, error) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusForbidden,
		Reason: metav1.StatusReasonForbidden, Message: fmt.Sprintf("only reading: %s %s is not sent", r.Method, r.URL.Path),
	}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: "403 Forbidden", StatusCode: http.StatusForbidden, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": []string{"application/json"}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}, nil
}
