package repository

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"sigs.k8s.io/cluster-api/packages"
)

// GoProxyURL returns the base URL of the first proxy in a GOPROXY list, or "" if the list starts with off or direct. An
// empty list means fallback, which has the same form.
func GoProxyURL(list, fallback string) (string, error) {
	if list == "" {
		list = fallback
	}
	first, _, _ := strings.Cut(strings.ReplaceAll(list, "|", ","), ",")
	first = strings.TrimSpace(first)
	if first == "" || first == "off" || first == "direct" {
		return "", nil
	}
	if !strings.Contains(first, "://") {
		first = "https://" + first
	}
	u, err := url.Parse(first)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return "", fmt.Errorf("GOPROXY starts with %q, which is not an http(s) URL: correct it, or set it to off", first)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// proxyVersions lists the versions of a Go module across all major versions: v0 and v1 share the path, v2 and up are a
// suffix of it.
func (s *Store) proxyVersions(ctx context.Context, module string) ([]string, error) {
	ctx = operationIn(ctx) // A server may have any number of major versions.
	var versions []string
	for major := 1; ; major++ {
		address := s.goProxy + "/" + escapeModule(module)
		if major > 1 {
			address += fmt.Sprintf("/v%d", major)
		}
		raw, _, err := s.fetch.get(ctx, request{url: address + "/@v/list"})
		if errors.Is(err, ErrNotFound) {
			return versions, nil
		}
		if err != nil {
			return nil, err
		}
		found := 0
		for version := range strings.FieldsSeq(string(raw)) {
			if _, err := packages.ParseVersion(version); err == nil {
				versions = append(versions, version)
				found++
			}
			if len(versions) > maxVersions {
				return nil, tooManyVersions()
			}
		}
		// A proxy that answers for every path would otherwise be asked forever.
		if found == 0 && major > 1 {
			return versions, nil
		}
	}
}

// ModuleVersions lists the versions of a Go module through the proxy, latest first. It returns none without a proxy.
func (s *Store) ModuleVersions(ctx context.Context, module string) ([]string, error) {
	if s.goProxy == "" {
		return nil, nil
	}
	versions, err := s.proxyVersions(ctx, module)
	return sortVersions(versions), err
}

// escapeModule escapes upper-case letters as the proxy protocol requires.
func escapeModule(module string) string {
	var b strings.Builder
	for _, r := range module {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
