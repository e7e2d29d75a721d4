package repository

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/cluster-api/packages"
)

const (
	githubHost    = "github.com"
	acceptJSON    = "application/vnd.github+json"
	acceptContent = "application/octet-stream"
	acceptRaw     = "application/vnd.github.raw"
	// maxPages bounds how many pages of releases are read, 100 releases each.
	maxPages = 20
)

// github reads the releases of a repository on GitHub.
type github struct {
	*Store
	owner, name string
}

type githubRelease struct {
	TagName string        `json:"tag_name"`
	Draft   bool          `json:"draft"`
	Assets  []githubAsset `json:"assets"`
}

type githubAsset struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	// Digest has the form sha256:{hex}; old assets have none.
	Digest string `json:"digest"`
}

// openGitHub reads a URL of the form https://github.com/{owner}/{repository}/releases/{latest|version}/{file}.
func (s *Store) openGitHub(u *url.URL) (Repository, location, error) {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 5 || parts[2] != "releases" {
		return nil, location{}, fmt.Errorf("it must have the form https://%s/{owner}/{repository}/releases/{latest|version}/{file}", githubHost)
	}
	if err := checkParts(parts); err != nil {
		return nil, location{}, err
	}
	parts = withoutDownload(parts)
	version := parts[3]
	if version != Latest {
		if _, err := packages.ParseVersion(version); err != nil {
			return nil, location{}, err
		}
	}
	loc := location{version: version, file: strings.Join(parts[4:], "/")}
	loc.folder = strings.TrimSuffix(u.String(), loc.file)
	return &github{Store: s, owner: parts[0], name: parts[1]}, loc, nil
}

// withoutDownload turns the parts of the addresses that GitHub shows for files, releases/latest/download/{file} and
// releases/download/{version}/{file}, into those of releases/{latest|version}/{file}.
func withoutDownload(parts []string) []string {
	const word = "download"
	if i := slices.Index(parts[3:], word); len(parts) > 5 && (i == 0 || i == 1 && parts[3] == Latest) {
		return slices.Delete(slices.Clone(parts), 3+i, 4+i)
	}
	return parts
}

// checkParts rejects paths that lead elsewhere once they are part of another URL.
func checkParts(parts []string) error {
	for _, part := range parts {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "/?#%") {
			return fmt.Errorf("its path has the part %q, which no owner, repository, version or file is called", part)
		}
	}
	return nil
}

// Versions uses the Go module proxy, which has no rate limit, and GitHub's API if there is no proxy or it does not have
// the repository.
func (g *github) Versions(ctx context.Context) ([]string, error) {
	var failed error
	if g.goProxy != "" {
		versions, err := g.proxyVersions(ctx, githubHost+"/"+g.owner+"/"+g.name)
		if err == nil && len(versions) > 0 {
			return versions, nil
		}
		if err != nil {
			failed = fmt.Errorf("the Go module proxy could not be used (GOPROXY=off leaves it out): %w", err)
			g.fetch.report("Listing the versions of %s/%s with GitHub's API, because %v", g.owner, g.name, failed)
		}
	}
	versions, err := g.apiVersions(ctx)
	if err != nil && failed != nil {
		err = fmt.Errorf("%w; and %w", err, failed)
	}
	return versions, err
}

// apiVersions lists the releases with GitHub's API.
func (g *github) apiVersions(ctx context.Context) ([]string, error) {
	var versions []string
	next := g.api("releases?per_page=100")
	for page := 0; next != "" && page < maxPages; page++ {
		var releases []githubRelease
		header, err := g.json(ctx, next, &releases)
		if err != nil {
			return nil, err
		}
		for _, r := range releases {
			if _, err := packages.ParseVersion(r.TagName); err == nil && !r.Draft {
				versions = append(versions, r.TagName)
			}
		}
		next = nextPage(header)
	}
	return versions, nil
}

// File tries the plain download page first, which has no rate limit, then the API, which also serves private
// repositories.
func (g *github) File(ctx context.Context, version, name string) ([]byte, error) {
	if g.goProxy != "" {
		page := fmt.Sprintf("%s/%s/%s/releases/download/%s/%s", g.github, g.owner, g.name, url.PathEscape(version), name)
		if raw, _, err := g.fetch.get(ctx, request{url: page}); !errors.Is(err, ErrNotFound) {
			return raw, err
		}
	}
	release, err := g.release(ctx, version)
	if err != nil {
		return nil, err
	}
	for _, asset := range release.Assets {
		if asset.Name == name {
			return g.asset(ctx, asset)
		}
	}
	return nil, fmt.Errorf("release %s of %s/%s has no file %s: %w", version, g.owner, g.name, name, ErrNotFound)
}

// asset downloads a file, and verifies its digest if GitHub has one.
func (g *github) asset(ctx context.Context, asset githubAsset) ([]byte, error) {
	raw, _, err := g.fetch.get(ctx, request{url: g.api(fmt.Sprintf("releases/assets/%d", asset.ID)), accept: acceptContent, github: true})
	if err != nil {
		return nil, err
	}
	want, known := strings.CutPrefix(asset.Digest, "sha256:")
	if sum := sha256.Sum256(raw); known && hex.EncodeToString(sum[:]) != want {
		return nil, fmt.Errorf("the download of %s has the SHA-256 checksum %x, but GitHub has recorded %s: run the command again; "+
			"if the error persists, check whether a proxy changes downloads", asset.Name, sum, want)
	}
	return raw, nil
}

// Files lists the assets of a release.
func (g *github) Files(ctx context.Context, version string) ([]string, error) {
	release, err := g.release(ctx, version)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, asset := range release.Assets {
		names = append(names, asset.Name)
	}
	return names, nil
}

func (g *github) release(ctx context.Context, version string) (*githubRelease, error) {
	release := &githubRelease{}
	_, err := g.json(ctx, g.api("releases/tags/"+url.PathEscape(version)), release)
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%s/%s has no release %s: %w", g.owner, g.name, version, err)
	}
	return release, err
}

func (g *github) api(path string) string {
	return fmt.Sprintf("%s/repos/%s/%s/%s", g.githubAPI, g.owner, g.name, path)
}

func (g *github) json(ctx context.Context, address string, into any) (http.Header, error) {
	raw, header, err := g.fetch.get(ctx, request{url: address, accept: acceptJSON, github: true})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, fmt.Errorf("GET %s: unexpected response: %w", address, err)
	}
	return header, nil
}

// nextPage returns the address of the next page from a Link header, or "".
func nextPage(header http.Header) string {
	for link := range strings.SplitSeq(header.Get("Link"), ",") {
		address, rel, ok := strings.Cut(link, ";")
		if ok && strings.TrimSpace(rel) == `rel="next"` {
			return strings.Trim(strings.TrimSpace(address), "<>")
		}
	}
	return ""
}

// Content downloads an https URL. URLs of files and release assets on GitHub are read through its API, so that private
// repositories work with a token; others are plain downloads.
func (s *Store) Content(ctx context.Context, address string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if u.Host != githubHost {
		raw, _, err := s.fetch.get(ctx, request{url: address})
		return raw, err
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 5 {
		return nil, fmt.Errorf("%s is not the URL of a file: "+
			"use https://%s/{owner}/{repository}/blob/{branch}/{path} or .../releases/download/{tag}/{file}", address, githubHost)
	}
	if err := checkParts(parts); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", address, err)
	}
	g := &github{Store: s, owner: parts[0], name: parts[1]}
	switch {
	case parts[2] == "blob":
		page := g.api("contents/"+strings.Join(parts[4:], "/")) + "?ref=" + url.QueryEscape(parts[3])
		raw, _, err := s.fetch.get(ctx, request{url: page, accept: acceptRaw, github: true})
		return raw, err
	case parts[2] == "releases" && parts[3] == "download" && len(parts) == 6:
		return g.File(ctx, parts[4], parts[5])
	default:
		return nil, fmt.Errorf(
			"%s is neither the URL of a file (.../blob/{branch}/{path}) nor of a release asset (.../releases/download/{tag}/{file})", address)
	}
}

// LatestRelease returns the tag and the page of a GitHub repository's latest release.
func (s *Store) LatestRelease(ctx context.Context, owner, name string) (tag, page string, err error) {
	g := &github{Store: s, owner: owner, name: name}
	release := &githubRelease{}
	if _, err := g.json(ctx, g.api("releases/latest"), release); err != nil {
		return "", "", err
	}
	return release.TagName, s.ReleasePage(owner, name, release.TagName), nil
}

// ReleasePage returns the URL of the web page of a release on GitHub.
func (s *Store) ReleasePage(owner, name, tag string) string {
	return fmt.Sprintf("%s/%s/%s/releases/tag/%s", s.github, owner, name, tag)
}
