package repository

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"sigs.k8s.io/cluster-api/packages"
)

// Open returns a Client for a provider's repository. It checks the URL but reads nothing yet.
func (s *Store) Open(p packages.Provider) (*Client, error) {
	repo, loc, err := s.open(p)
	if err != nil {
		return nil, fmt.Errorf("%s %q has an invalid url %q: %w", p.Type, p.Name, p.URL, err)
	}
	return &Client{Provider: p, Advice: s.advice, repo: inBounds{repo}, loc: loc, overrides: s.overrides}, nil
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
