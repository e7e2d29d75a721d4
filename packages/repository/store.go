package repository

import (
	"strings"
)

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
