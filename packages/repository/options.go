package repository

import (
	"net/http"
	"time"
)

// Options configures a Store. The zero value reads public repositories without credentials, proxy or overrides.
type Options struct {
	// HTTP makes all requests; nil means a client with a timeout of 30s.
	HTTP *http.Client
	// GoProxy is the base URL of the Go module proxy that lists versions of GitHub repositories; empty means GitHub's
	// API. See GoProxyURL.
	GoProxy string
	// GitHubToken authenticates requests to GitHub's API; empty means anonymous.
	GitHubToken string
	// GitHub is the base URL of GitHub's download pages, GitHubAPI that of its API; empty means the public ones.
	GitHub, GitHubAPI string
	// RetryInterval and RetryTimeout bound retries of failed requests; zero means every 10s for 1m.
	RetryInterval, RetryTimeout time.Duration
	// SingleAttempt makes no retries at all: the caller makes them.
	SingleAttempt bool
	// Report, which may be nil, is called with what takes time, and with failures after which something else is tried.
	Report func(format string, args ...any)
	// Advice is for messages.
	Advice Advice
	// Now returns the time, for messages about rate limits; nil means time.Now.
	Now func() time.Time
	// OverridesFolder holds files that override published ones; empty means none.
	OverridesFolder string
}
