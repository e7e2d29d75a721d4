package repository

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"sigs.k8s.io/cluster-api/packages"
)

// gitlab reads a generic package of a GitLab instance. Such packages cannot be listed without credentials, so the only
// known version is the one in its URL.
type gitlab struct {
	fetch *fetcher
	// prefix is everything before the version.
	prefix  string
	version string
}

// openGitLab reads a URL of the form
// https://gitlab.{host}/api/v4/projects/{project}/packages/generic/{package}/{version}/{file}; {project} is an ID or an
// escaped path, which is why the escaped form of the URL is parsed.
func (s *Store) openGitLab(u *url.URL) (Repository, location, error) {
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	if len(parts) != 9 || strings.Join(parts[:3], "/") != "api/v4/projects" || parts[4] != "packages" || parts[5] != "generic" {
		return nil, location{}, fmt.Errorf("it must have the form "+
			"https://%s/api/v4/projects/{project, with slashes escaped as %%2F}/packages/generic/{package}/{version}/{file}", u.Host)
	}
	for _, part := range parts {
		if name, err := url.PathUnescape(part); err != nil || name == "" || name == "." || name == ".." {
			return nil, location{}, fmt.Errorf("its path has the part %q, which no project, package, version or file is called", part)
		}
	}
	if _, err := packages.ParseVersion(parts[7]); err != nil {
		return nil, location{}, err
	}
	prefix := fmt.Sprintf("%s://%s/%s/", u.Scheme, u.Host, strings.Join(parts[:7], "/"))
	loc := location{version: parts[7], file: parts[8], folder: prefix + parts[7] + "/"}
	return &gitlab{fetch: s.fetch, prefix: prefix, version: parts[7]}, loc, nil
}

// Versions returns the version in the URL.
func (g *gitlab) Versions(context.Context) ([]string, error) {
	return []string{g.version}, nil
}

// File downloads a file of the package.
func (g *gitlab) File(ctx context.Context, version, name string) ([]byte, error) {
	raw, _, err := g.fetch.get(ctx, request{url: g.prefix + url.PathEscape(version) + "/" + url.PathEscape(name)})
	return raw, err
}

// Files is not supported.
func (g *gitlab) Files(context.Context, string) ([]string, error) {
	return nil, fmt.Errorf("listing GitLab packages is not supported: %w", errors.ErrUnsupported)
}
