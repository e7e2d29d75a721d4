package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	defaultTimeout       = 30 * time.Second
	defaultRetryInterval = 10 * time.Second
	defaultRetryTimeout  = time.Minute
	// maxDownload bounds what is read into memory; the largest components files are a few MiB.
	maxDownload = 64 << 20
)

// fetcher makes GET requests, with retries, and caches the responses.
type fetcher struct {
	http     *http.Client
	token    string
	interval time.Duration
	timeout  time.Duration

	mu    sync.Mutex
	cache map[string]*answer
}

// answer is a cached response; ready is closed once the other fields are set.
type answer struct {
	ready  chan struct{}
	body   []byte
	header http.Header
	err    error
}

func newFetcher(o Options) *fetcher {
	f := &fetcher{http: o.HTTP, token: o.GitHubToken, interval: o.RetryInterval, timeout: o.RetryTimeout, cache: map[string]*answer{}}
	if f.http == nil {
		f.http = &http.Client{Timeout: defaultTimeout}
	}
	if f.interval == 0 {
		f.interval = defaultRetryInterval
	}
	if f.timeout == 0 {
		f.timeout = defaultRetryTimeout
	}
	return f
}

// request is one GET request.
type request struct {
	url    string
	accept string
	// github adds the token, which must only be sent to GitHub.
	github bool
}

// get returns the body and header of a successful response. Concurrent and later calls for the same request share one
// response; errors other than "not found" are not cached, so that a later call tries again.
func (f *fetcher) get(ctx context.Context, r request) ([]byte, http.Header, error) {
	key := r.accept + " " + r.url
	f.mu.Lock()
	a, known := f.cache[key]
	if !known {
		a = &answer{ready: make(chan struct{})}
		f.cache[key] = a
	}
	f.mu.Unlock()
	if known {
		select {
		case <-a.ready:
			return a.body, a.header, a.err
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	a.body, a.header, a.err = f.retry(ctx, r)
	if a.err != nil && !errors.Is(a.err, ErrNotFound) {
		f.mu.Lock()
		delete(f.cache, key)
		f.mu.Unlock()
	}
	close(a.ready)
	return a.body, a.header, a.err
}

func (f *fetcher) retry(ctx context.Context, r request) ([]byte, http.Header, error) {
	var body []byte
	var header http.Header
	var last error
	err := wait.PollUntilContextTimeout(ctx, f.interval, f.timeout, true, func(ctx context.Context) (bool, error) {
		var again bool
		body, header, again, last = f.once(ctx, r)
		if last != nil && !again {
			return false, last
		}
		return last == nil, nil
	})
	if last != nil && err != nil && ctx.Err() == nil {
		return nil, nil, last
	}
	return body, header, err
}

// once makes one attempt; again reports whether a retry may succeed.
func (f *fetcher) once(ctx context.Context, r request) (body []byte, header http.Header, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, nil, false, err
	}
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	if r.github && f.token != "" {
		req.Header.Set("Authorization", "Bearer "+f.token)
	}
	resp, err := f.http.Do(req)
	if err != nil {
		var dns *net.DNSError
		return nil, nil, !(errors.As(err, &dns) && dns.IsNotFound), err
	}
	defer resp.Body.Close()
	if again, err := statusError(resp, r); err != nil {
		return nil, nil, again, err
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxDownload+1))
	if err != nil {
		return nil, nil, true, fmt.Errorf("GET %s: %w", r.url, err)
	}
	if len(body) > maxDownload {
		return nil, nil, false, fmt.Errorf("GET %s: the file is larger than %d MiB", r.url, maxDownload>>20)
	}
	return body, resp.Header, false, nil
}

func statusError(resp *http.Response, r request) (again bool, err error) {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		return false, nil
	case code == http.StatusNotFound || code == http.StatusGone:
		return false, fmt.Errorf("GET %s: %s: %w", r.url, resp.Status, ErrNotFound)
	case r.github && (code == http.StatusForbidden || code == http.StatusTooManyRequests) && rateLimited(resp):
		return false, fmt.Errorf("GET %s: %s: the rate limit of GitHub's API is exceeded: set GITHUB_TOKEN to a personal access token, or wait", r.url, resp.Status)
	case r.github && code == http.StatusUnauthorized:
		return false, fmt.Errorf("GET %s: %s: check the value of GITHUB_TOKEN", r.url, resp.Status)
	default:
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests, fmt.Errorf("GET %s: %s", r.url, resp.Status)
	}
}

func rateLimited(resp *http.Response) bool {
	return resp.Header.Get("X-RateLimit-Remaining") == "0" || resp.Header.Get("Retry-After") != "" ||
		resp.StatusCode == http.StatusTooManyRequests
}
