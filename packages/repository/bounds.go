package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxDownload bounds what is read into memory; the largest components files are a few MiB.
const maxDownload = 64 << 20

// maxVersions is how many versions a repository may have, with those that are ignored.
const maxVersions = 100_000

// maxFields is how many commas a JSON response may have: objects in memory are larger than their text, empty ones many times.
const maxFields = 2 << 20

// bounds are the limits of one operation, which reads a file or lists versions. Whatever servers do, it costs no more.
type bounds struct {
	// file is the size of the largest file in bytes, answer that of other responses: lists, manifests, tokens, errors.
	file, answer int64
	// answers is the size of all responses that are not files, headers that of the headers of one.
	answers, headers int64
	// requests counts redirects and repetitions, too.
	requests int
	time     time.Duration
}

// storeBounds are for GitHub, GitLab and Go module proxies. A page of GitHub's API with 100 releases has up to 16 MiB.
func storeBounds() bounds {
	return bounds{file: maxDownload, answer: 32 << 20, answers: 128 << 20, headers: 1 << 20, requests: 500, time: 10 * time.Minute}
}

// registryBounds are for OCI registries, which limit manifests to 4 MiB. The error of a layer that is too large is that of its reader.
func registryBounds() bounds {
	return bounds{file: maxDownload + 1, answer: 4 << 20, answers: 16 << 20, headers: 1 << 20, requests: 200, time: 10 * time.Minute}
}

// BoundsError is the error of an operation that exceeds what is accepted from a server. It is not worth a repetition.
type BoundsError struct{ what string }

// Error implements error.
func (e *BoundsError) Error() string {
	return e.what + ": check that it is the address of a provider's releases"
}

// bounded is a transport for requests to servers that are not trusted. Requests of one operation have its context.
type bounded struct {
	next http.RoundTripper
	// isFile reports whether the response to a request is a file.
	isFile func(*http.Request) bool
	bounds
}

// boundTransport returns a bounded transport. Without a next one, it is the default one.
func boundTransport(next http.RoundTripper, b bounds, isFile func(*http.Request) bool) *bounded {
	if next == nil {
		next = http.DefaultTransport
	}
	return &bounded{next: next, isFile: isFile, bounds: b}
}

// operation counts what was spent. It is in the context of all requests of the operation.
type operation struct {
	mu       sync.Mutex
	deadline time.Time
	requests int
	answers  int64
}

type operationKey struct{}

// operationIn returns a context in which all requests together have the limits of one operation. An operation that is a part of another
// one has those of the whole.
func operationIn(ctx context.Context) context.Context {
	if _, ok := ctx.Value(operationKey{}).(*operation); ok {
		return ctx
	}
	return context.WithValue(ctx, operationKey{}, &operation{})
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	parent := operationIn(r.Context())
	op, _ := parent.Value(operationKey{}).(*operation)
	deadline, ok := op.begin(b.bounds)
	if !ok {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, &BoundsError{fmt.Sprintf("the server makes more than %d requests necessary", b.requests)}
	}
	ctx, cancel := context.WithDeadline(parent, deadline)
	slow := func(err error) error {
		if ctx.Err() == nil || parent.Err() != nil {
			return err
		}
		return &BoundsError{fmt.Sprintf("the server did not complete its responses within %s", b.time)}
	}
	response, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		err = slow(err)
		cancel()
		return nil, err
	}
	body := &boundedBody{ReadCloser: response.Body, op: op, bounds: b.bounds, left: b.answer, slow: slow, cancel: cancel}
	if body.isFile = b.isFile(original(r)) && response.StatusCode == http.StatusOK; body.isFile {
		body.left = b.file
	}
	body.limit = body.left
	if size(response.Header) > b.headers {
		_ = body.Close()
		return nil, &BoundsError{"the headers of the response are larger than " + bytesText(b.headers)}
	}
	response.Body = body
	return response, nil
}

// begin counts a request, and reports whether it may be made, and until when.
func (o *operation) begin(b bounds) (deadline time.Time, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.requests++; o.requests == 1 {
		o.deadline = time.Now().Add(b.time)
	}
	return o.deadline, o.requests <= b.requests
}

// spend counts bytes of a response that is not a file, and reports whether that many are accepted.
func (o *operation) spend(n int, limit int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers += int64(n)
	return o.answers <= limit
}

// original returns the request whose redirects led to this one.
func original(r *http.Request) *http.Request {
	for r.Response != nil && r.Response.Request != nil {
		r = r.Response.Request
	}
	return r
}

func size(h http.Header) int64 {
	var n int64
	for key, values := range h {
		for _, value := range values {
			n += int64(len(key) + len(value))
		}
	}
	return n
}

// boundedBody is the body of a response, decompressed.
type boundedBody struct {
	io.ReadCloser
	op *operation
	bounds
	isFile      bool
	limit, left int64
	slow        func(error) error
	cancel      context.CancelFunc
}

// Read implements io.Reader. After an error, the connection is closed, because not all libraries close bodies.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		_ = b.Close()
	}
	return n, err
}

func (b *boundedBody) read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	b.left -= int64(n)
	switch {
	case b.left < 0:
		what := "response"
		if b.isFile {
			what = "file"
		}
		return 0, &BoundsError{"the " + what + " is larger than " + bytesText(b.limit)}
	case !b.isFile && !b.op.spend(n, b.answers):
		return 0, &BoundsError{"the responses of the server are larger than " + bytesText(b.answers)}
	case err != nil && !errors.Is(err, io.EOF):
		return n, b.slow(err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

func bytesText(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }

// isStoreFile reports whether a request of a Store is for a file, and not for a list.
func isStoreFile(r *http.Request) bool {
	return r.Header.Get("Accept") != acceptJSON && !strings.HasSuffix(r.URL.Path, "/@v/list")
}

// isBlob reports whether a request to a registry is for a layer.
func isBlob(r *http.Request) bool { return strings.Contains(r.URL.Path, "/blobs/") }

// inBounds is a Repository each of whose calls is one operation.
type inBounds struct{ Repository }

// Versions implements Repository.
func (r inBounds) Versions(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithCancel(operationIn(ctx))
	defer cancel() // It ends responses of which a library has not read the rest.
	versions, err := r.Repository.Versions(ctx)
	if len(versions) > maxVersions {
		return nil, tooManyVersions()
	}
	return versions, err
}

func tooManyVersions() error {
	return &BoundsError{fmt.Sprintf("the server lists more than %d versions", maxVersions)}
}

// File implements Repository.
func (r inBounds) File(ctx context.Context, version, name string) ([]byte, error) {
	return r.Repository.File(operationIn(ctx), version, name)
}

// Files implements Repository.
func (r inBounds) Files(ctx context.Context, version string) ([]string, error) {
	return r.Repository.Files(operationIn(ctx), version)
}
