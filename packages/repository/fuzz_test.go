package repository

import (
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
)

// Whatever URL a provider has: one that is accepted names a version and a file, and what is then read is on its host, or below
// the folder that it names.
func FuzzOpen(f *testing.F) {
	for _, address := range []string{
		"https://github.com/kubernetes-sigs/x/releases/latest/infrastructure-components.yaml", "https://github.com/o/r/releases/v1.0.0/a/b.yaml", "https://github.com/o/r/releases/v1.0.0/", "https://github.com/../../releases/latest/x", "https://github.com/o/r/releases/latest/../../../x", "https://github.com:443/o/r/releases/latest/x",
		"https://github.com@evil/o/r/releases/latest/x", "https://gitlab.example.com/api/v4/projects/a%2Fb/packages/generic/p/v1.0.0/c.yaml", "https://gitlab.@evil/api/v4/projects/1/packages/generic/p/v1.0.0/c.yaml", "https://gitlab./api/v4/projects/1/packages/generic/p/v1.0.0/..", "/repo/infrastructure-mine/v1.0.0/c.yaml", "/infrastructure-mine/latest/c.yaml",
		"file:///repo/infrastructure-mine/latest/c.yaml", "file://infrastructure-mine/latest/c.yaml", "/repo/infrastructure-mine/v1.0.0/../../etc/passwd", "file:///repo/infrastructure-mine/latest/%2e%2e/x", "http://github.com/o/r/releases/latest/x", "relative/infrastructure-mine/latest/c", "", "https://", "https://github.com/o/r/releases/latest/é?x=y#z", "HTTPS://github.com/o/r/releases/latest/x", "https://github.com/o/%2e%2e/releases/latest/x%2fy", "https://github.com//r/releases/latest/x",
	} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		p := packages.Provider{Name: "mine", Type: clusterctlv1.InfrastructureProviderType, URL: address}
		c, err := NewStore(Options{}).Open(p)
		if err != nil {
			return
		}
		if c.loc.version != Latest {
			if _, err := packages.ParseVersion(c.loc.version); err != nil {
				t.Errorf("%q has version %q", address, c.loc.version)
			}
		}
		if c.ComponentsFile() == "" {
			t.Errorf("%q has no file", address)
		}
		switch repo := c.repo.(inBounds).Repository.(type) {
		case local:
			if !filepath.IsAbs(repo.folder) || filepath.Base(repo.folder) != p.ManifestLabel() {
				t.Errorf("%q is folder %q", address, repo.folder)
			}
			if file := filepath.Join(repo.folder, c.loc.version, c.loc.file); !strings.HasPrefix(file, repo.folder+"/") {
				t.Errorf("%q reads %q", address, file)
			}
		case *github:
			page, err := url.Parse(repo.api("releases/tags/" + url.PathEscape(c.loc.version)))
			if err != nil {
				t.Fatalf("%q makes a request that is no URL: %v", address, err)
			}
			if page.Host != "api."+githubHost || page.User != nil || page.RawQuery != "" || !strings.HasPrefix(page.JoinPath().Path, "/repos/") || page.JoinPath().Path != page.Path {
				t.Errorf("%q asks %s", address, page)
			}
		case *gitlab:
			page, err := url.Parse(repo.prefix)
			if err != nil || page.Scheme != "https" || page.User != nil || strings.Contains(page.Path, "/../") || !strings.HasPrefix(page.Host, "gitlab.") || !strings.HasPrefix(page.Path, "/api/v4/projects/") {
				t.Errorf("%q asks %s, %v", address, page, err)
			}
		default:
			t.Errorf("%q is a %T", address, repo)
		}
	})
}

// Versions are sorted, and all of them are among those that were given; a link to a next page is one of the header.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{"v1.0.0 v1.0.1 v1.0.0-rc.1", "1.0.0 v1.0.0 v1.0.0", "x v1 v1.0", "v0.0.0-1 v0.0.0-a v0.0.0+b", "v99999999999999999999.0.0", `<https://api.github.com/x?page=2>; rel="next", <y>; rel="last"`, `<x>;rel=next`, ",;,<", "<a>; rel=\"next\""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		given := strings.Fields(text)
		sorted := sortVersions(given)
		if again := sortVersions(slices.Clone(sorted)); !slices.Equal(sorted, again) {
			t.Errorf("%q, sorted again %q", sorted, again)
		}
		for _, version := range sorted {
			if _, err := packages.ParseVersion(version); err != nil || !slices.Contains(given, version) {
				t.Errorf("%q comes of %q", version, given)
			}
		}
		if next := nextPage(http.Header{"Link": {text}}); !strings.Contains(text, next) {
			t.Errorf("%q leads to %q", text, next)
		}
		if proxy, err := GoProxyURL(text, ""); err == nil && proxy != "" {
			u, err := url.Parse(proxy)
			if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
				t.Errorf("GOPROXY %q is %q", text, proxy)
			}
		}
	})
}
