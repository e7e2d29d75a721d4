package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	defaultTimeout       = 30 * time.Second
	defaultRetryInterval = 10 * time.Second
	defaultRetryTimeout  = time.Minute
)

// fetcher makes GET requests, with retries, and caches the responses.
type fetcher struct {
	http     *http.Client
	token    string
	interval time.Duration
	timeout  time.Duration
	now      func() time.Time
	single   bool
	report   func(format string, args ...any)
	advice   Advice
	// transport is that of http.
	transport *bounded

	mu    sync.Mutex
	cache map[string]*cachedResponse
}

// cachedResponse is a response in the cache; ready is closed once the other fields are set.
type cachedResponse struct {
	ready  chan struct{}
	body   []byte
	header http.Header
	err    error
	// partial is set if the request was given up: another call may succeed.
	partial bool
}

type onceKey struct{}

// Once returns a context in which a failed request is not repeated: for what can be left out.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, true) }

func isOnce(ctx context.Context) bool { return ctx.Value(onceKey{}) != nil }

func newFetcher(o Options) *fetcher {
	f := &fetcher{
		http: &http.Client{Timeout: defaultTimeout}, token: o.GitHubToken, interval: o.RetryInterval, timeout: o.RetryTimeout,
		now: o.Now, single: o.SingleAttempt, report: o.Report, advice: o.Advice.orDefault(), cache: map[string]*cachedResponse{},
	}
	if o.HTTP != nil {
		c := *o.HTTP
		f.http = &c
	}
	f.transport = boundTransport(f.http.Transport, storeBounds(), isStoreFile)
	f.http.Transport = f.transport
	f.http.CheckRedirect = checkRedirect
	if f.now == nil {
		f.now = time.Now
	}
	if f.report == nil {
		f.report = func(string, ...any) {}
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
	for {
		f.mu.Lock()
		a, known := f.cache[key]
		if !known {
			a = &cachedResponse{ready: make(chan struct{})}
			f.cache[key] = a
		}
		f.mu.Unlock()
		if !known {
			f.fill(ctx, key, a, r)
			return a.body, a.header, a.err
		}
		select {
		case <-a.ready:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		if a.err == nil || !a.partial || errors.Is(a.err, ErrNotFound) || isOnce(ctx) {
			return a.body, a.header, a.err
		}
	}
}

// fill makes a request for the cache.
func (f *fetcher) fill(ctx context.Context, key string, a *cachedResponse, r request) {
	defer close(a.ready)
	a.body, a.header, a.err = f.retry(ctx, r)
	a.partial = ctx.Err() != nil || isOnce(ctx)
	if a.err != nil && !errors.Is(a.err, ErrNotFound) {
		f.mu.Lock()
		delete(f.cache, key)
		f.mu.Unlock()
	}
}

func (f *fetcher) retry(ctx context.Context, r request) ([]byte, http.Header, error) {
	if f.single || isOnce(ctx) {
		body, header, _, err := f.once(ctx, r)
		return body, header, err
	}
	var body []byte
	var header http.Header
	var last error
	attempts := 0
	err := wait.PollUntilContextTimeout(ctx, f.interval, f.timeout, true, func(ctx context.Context) (bool, error) {
		b, h, again, err := f.once(ctx, r)
		if err != nil && ctx.Err() != nil && last != nil {
			// The end of the retries interrupted this attempt: the errors before say more.
			return false, last
		}
		attempts++
		body, header, last = b, h, err
		if last != nil && !again {
			return false, last
		}
		if last != nil && attempts == 1 && ctx.Err() == nil {
			f.report("Retrying for up to %s: %v", f.timeout, last)
		}
		return last == nil, nil
	})
	switch {
	case err == nil || last == nil || ctx.Err() != nil:
		return body, header, err
	case attempts > 1:
		return nil, nil, fmt.Errorf("%w (after %d attempts)", last, attempts)
	default:
		return nil, nil, last
	}
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
	if exceeded, ok := errors.AsType[*BoundsError](err); ok {
		return nil, nil, false, fmt.Errorf("GET %s: %w", r.shown(), exceeded)
	}
	if err != nil {
		var dns *net.DNSError
		permanent := errors.As(err, &dns) && dns.IsNotFound || errors.Is(err, errRedirects)
		return nil, nil, !permanent, err
	}
	defer resp.Body.Close()
	if again, err := f.statusError(resp, r); err != nil {
		return nil, nil, again, err
	}
	body, again, err = f.read(resp, r)
	if err != nil {
		return nil, nil, again, err
	}
	return body, resp.Header, false, nil
}

// shown returns the URL for messages: without a password.
func (r request) shown() string {
	u, err := url.Parse(r.url)
	if err != nil {
		return r.url
	}
	return u.Redacted()
}

// read reads the body of a successful response.
func (f *fetcher) read(resp *http.Response, r request) (body []byte, again bool, err error) {
	body, err = io.ReadAll(resp.Body)
	exceeded, exceeds := errors.AsType[*BoundsError](err)
	switch {
	case exceeds:
		return nil, false, fmt.Errorf("GET %s: %w", r.shown(), exceeded)
	case err != nil:
		return nil, true, &url.Error{Op: "GET", URL: r.shown(), Err: fmt.Errorf("the download ended after %d bytes: %w", len(body), err)}
	case r.accept == acceptJSON && bytes.Count(body, []byte(",")) > maxFields:
		return nil, false, fmt.Errorf("GET %s: %w", r.shown(), &BoundsError{"the response has too many fields"})
	case isHTML(body):
		return nil, false, fmt.Errorf("GET %s: the server responded with an HTML page instead of the file: "+
			"check the URL, and whether a proxy or a login page is in between", r.shown())
	default:
		return body, false, nil
	}
}

// isHTML reports whether a file is a web page, such as the login page of a proxy. YAML and JSON do not start with a tag.
func isHTML(body []byte) bool {
	start := bytes.ToLower(bytes.TrimSpace(body[:min(len(body), 512)]))
	return bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start, []byte("<html"))
}

// maxRedirects is how many redirects one request follows; GitHub's downloads have two.
const maxRedirects = 10

var errRedirects = errors.New("too many redirects: check the URL, and whether a proxy or a login page is in between")

func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return errRedirects
	}
	return nil
}

func (f *fetcher) statusError(resp *http.Response, r request) (again bool, err error) {
	failed := func(remedy string) error { return fmt.Errorf("GET %s: %s: %s", r.shown(), resp.Status, remedy) }
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		return false, nil
	case code == http.StatusNotFound || code == http.StatusGone:
		return false, fmt.Errorf("GET %s: %s: %w", r.shown(), resp.Status, ErrNotFound)
	case r.github && (code == http.StatusForbidden || code == http.StatusTooManyRequests) && rateLimited(resp):
		return false, failed(f.rateLimit(resp))
	case r.github && (code == http.StatusUnauthorized || code == http.StatusForbidden):
		return false, fmt.Errorf("GET %s: %s: %w", r.shown(), resp.Status, &TokenError{f.advice.Token})
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return false, failed(f.advice.Credentials)
	case code >= http.StatusInternalServerError || code == http.StatusTooManyRequests:
		return true, failed("the server is overloaded or down: try again later")
	default:
		return false, failed("unexpected response: check the URL")
	}
}

func rateLimited(resp *http.Response) bool {
	return resp.Header.Get("X-RateLimit-Remaining") == "0" || resp.Header.Get("Retry-After") != "" ||
		resp.StatusCode == http.StatusTooManyRequests
}

// rateLimit explains a rejection by one of GitHub's limits: the primary one, of requests per hour, is much higher with a
// token and names the time when it ends; the secondary one, of bursts, only names a delay.
func (f *fetcher) rateLimit(resp *http.Response) string {
	until := "wait"
	if reset, err := strconv.ParseInt(resp.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil &&
		resp.Header.Get("X-RateLimit-Remaining") == "0" {
		end := time.Unix(reset, 0)
		until = fmt.Sprintf("wait until %s (%s)", end.UTC().Format(time.RFC3339), duration.HumanDuration(max(0, end.Sub(f.now()))))
	} else if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		return fmt.Sprintf("the rate limit of GitHub's API for bursts of requests is exceeded: wait %s, and run fewer commands at once",
			time.Duration(seconds)*time.Second)
	}
	if f.token != "" {
		return "the rate limit of GitHub's API for the token in " + f.advice.Token + " is exceeded: " + until + ", or use another token"
	}
	return "the rate limit of GitHub's API is exceeded: set " + f.advice.Token + " to a personal access token, or " + until
}
