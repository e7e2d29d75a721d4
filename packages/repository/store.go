package repository

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/cluster-api/packages"
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
	// Advice is for messages.
	Advice Advice
	// Now returns the time, for messages about rate limits; nil means time.Now.
	Now func() time.Time
	// OverridesFolder holds files that override published ones; empty means none.
	OverridesFolder string
}

// Store opens repositories. Downloads are cached for its lifetime, so a file is fetched once even if several providers
// share a repository. It is safe for concurrent use.
type Store struct {
	fetch     *fetcher
	goProxy   string
	github    string
	githubAPI string
	overrides string
	advice    Advice
}

// NewStore returns a Store.
func NewStore(o Options) *Store {
	s := &Store{
		fetch:     newFetcher(o),
		goProxy:   strings.TrimSuffix(o.GoProxy, "/"),
		github:    strings.TrimSuffix(o.GitHub, "/"),
		githubAPI: strings.TrimSuffix(o.GitHubAPI, "/"),
		overrides: o.OverridesFolder,
		advice:    o.Advice,
	}
	if s.github == "" {
		s.github = "https://" + githubHost
	}
	if s.githubAPI == "" {
		s.githubAPI = "https://api." + githubHost
	}
	return s
}

// Published returns a Store without overrides, which shares downloads with s.
func (s *Store) Published() *Store {
	published := *s
	published.overrides = ""
	return &published
}

// Open returns a Client for a provider's repository. It checks the URL but reads nothing yet.
func (s *Store) Open(p packages.Provider) (*Client, error) {
	repo, loc, err := s.open(p)
	if err != nil {
		return nil, fmt.Errorf("%s %q has an invalid url %q: %w", p.Type, p.Name, p.URL, err)
	}
	return &Client{Provider: p, Advice: s.advice, repo: repo, loc: loc, overrides: s.overrides}, nil
}

func (s *Store) open(p packages.Provider) (Repository, location, error) {
	if filepath.IsAbs(p.URL) {
		return openLocal(p, p.URL)
	}
	u, err := url.Parse(p.URL)
	if err != nil {
		return nil, location{}, err
	}
	switch {
	case u.Scheme == "file":
		return openLocal(p, filepath.FromSlash(u.Path))
	case u.Scheme == "https" && u.Host == githubHost:
		return s.openGitHub(u)
	case u.Scheme == "https" && strings.HasPrefix(u.Host, "gitlab."):
		return s.openGitLab(u)
	default:
		return nil, location{}, fmt.Errorf("use https://%s/{owner}/{repository}/releases/{version|latest}/{file}, "+
			"https://gitlab.{host}/api/v4/projects/{project}/packages/generic/{package}/{version}/{file}, or an absolute path", githubHost)
	}
}
