package repository

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
)

// flood sends text until the client has enough. It counts what was sent.
func flood(w http.ResponseWriter, start, text string, sent *atomic.Int64) {
	chunk := []byte(strings.Repeat(text, 1+(32<<10)/len(text)))
	n, err := fmt.Fprint(w, start)
	for err == nil {
		sent.Add(int64(n))
		n, err = w.Write(chunk)
	}
}

// endless is a server that never comes to an end. Each test has one way.
type endless struct {
	sent     atomic.Int64
	requests atomic.Int64
	answer   func(w http.ResponseWriter, r *http.Request, e *endless)
}

func (e *endless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.requests.Add(1)
	e.answer(w, r, e)
}

// small are the bounds of these tests.
func small() bounds {
	return bounds{file: 256 << 10, answer: 128 << 10, answers: 1 << 20, headers: 8 << 10, requests: 15, time: time.Minute}
}

// TestEndlessServers: whatever a server does, an operation ends, with a bounded amount of memory and of requests.
func TestEndlessServers(t *testing.T) { //nolint:funlen // A table, with the answers that its rows use.
	type answer = func(w http.ResponseWriter, r *http.Request, e *endless)
	always := func(start, text string, status int, header ...string) answer {
		return func(w http.ResponseWriter, _ *http.Request, e *endless) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			flood(w, start, text, &e.sent)
		}
	}
	at := func(part string, special, other answer) answer {
		return func(w http.ResponseWriter, r *http.Request, e *endless) {
			if strings.Contains(r.URL.Path, part) {
				special(w, r, e)
				return
			}
			other(w, r, e)
		}
	}
	is := func(text string, header ...string) answer {
		return func(w http.ResponseWriter, r *http.Request, e *endless) {
			respond(http.StatusOK, text, header...)(w, r)
		}
	}
	next := func(text string) answer { // Page after page, each of another address.
		return func(w http.ResponseWriter, r *http.Request, e *endless) {
			u := url.URL{Scheme: "https", Host: r.Header.Get("X-Test-Host"), Path: r.URL.Path, RawQuery: fmt.Sprintf("last=%d", e.requests.Load())}
			w.Header().Set("Link", "<"+u.String()+`>; rel="next"`)
			fmt.Fprint(w, text)
		}
	}
	bomb := func(w http.ResponseWriter, _ *http.Request, _ *endless) {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		for zeros := make([]byte, 1<<20); ; {
			if _, err := packed.Write(zeros); err != nil {
				return
			}
		}
	}
	silent := func(w http.ResponseWriter, r *http.Request, _ *endless) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	manyHeaders := func(w http.ResponseWriter, _ *http.Request, _ *endless) {
		for i := range 1000 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 20))
		}
	}
	elsewhere := func(w http.ResponseWriter, r *http.Request, e *endless) {
		http.Redirect(w, r, fmt.Sprintf("https://%s%s?n=%d", r.Header.Get("X-Test-Host"), r.URL.Path, e.requests.Load()), http.StatusTemporaryRedirect)
	}
	const manifest = `{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": {"digest": "sha256:` +
		`e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}, "layers": [{"size": 99999999999, "digest": "sha256:` +
		`f3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "annotations": {"org.opencontainers.image.title": "components.yaml"}}]}`
	ociManifest := is(manifest, "Content-Type", "application/vnd.oci.image.manifest.v1+json")
	tokens := func(token answer) answer {
		return at("/token", token, func(w http.ResponseWriter, r *http.Request, _ *endless) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="https://registry.example/token",service="s"`)
			w.WriteHeader(http.StatusUnauthorized)
		})
	}
	const oci, github, proxy, gitlab, plain, modules = "oci", "github", "proxy", "gitlab", "plain", "modules"
	const large, files, many, slow = "are larger than 1Mi", "is larger than", "makes more than 15 requests necessary", "did not complete its responses within"
	for _, tc := range []struct {
		reason, kind string
		file         bool // Read a file; otherwise, list versions.
		answer       answer
		want         string
	}{
		{"tags", oci, false, at("tags/list", always(`{"tags":["v1.0.0"`, `,"v1"`, 200), is("{}")), files},
		{"pages of tags", oci, false, at("tags/list", next(`{"tags":["v1.0.0"]}`), is("{}")), many},
		{"large pages of tags", oci, false, at("tags/list", next(`{"tags":["`+strings.Repeat("v", 100<<10)+`"]}`), is("{}")), large},
		{"errors", oci, false, always(`{"errors":[`, `{},`, 400), files},
		{"tokens", oci, false, tokens(always(`{"token":"`, "x", 200)), files},
		{"errors instead of tokens", oci, false, tokens(always(`{"errors":[`, `{},`, 403)), files},
		{"redirects of tokens", oci, false, tokens(elsewhere), "redirects"},
		{"answers that wait", oci, false, silent, slow},
		{"headers", oci, false, manyHeaders, "the headers of the response are larger than 8Ki"},
		{"compressed tags", oci, false, at("tags/list", bomb, is("{}")), "invalid character"},
		{"manifests", oci, true, at("/manifests/", always("{", " ", 200), is("{}")), files},
		{"layers", oci, true, at("/blobs/", always("", "x", 200), at("/manifests/", ociManifest, is("{}"))), files},
		{"errors instead of layers", oci, true, at("/blobs/", always("", "x", 400), at("/manifests/", ociManifest, is("{}"))), files},
		{"layers elsewhere", oci, true, at("/blobs/", elsewhere, at("/manifests/", ociManifest, is("{}"))), "redirects"},

		{"releases", github, false, always(`[{}`, `,{}`, 200), files},
		{"pages of releases", github, false, next(`[{"tag_name": "v1.0.0"}]`), many},
		{"large pages of releases", github, false, next(`["` + strings.Repeat("x", 100<<10) + `"]`), "unexpected response"},
		{"a release", github, true, always(`{"assets":[{}`, `,{}`, 200), files},
		{"a file", github, true, at("/tags/", is(`{"assets":[{"id": 1, "name": "components.yaml"}]}`), always("", "x", 200)), files},
		{"a compressed file", github, true, at("/tags/", is(`{"assets":[{"id": 1, "name": "components.yaml"}]}`), bomb), files},
		{"a file that waits", github, true, silent, slow},
		{"headers of a file", github, true, manyHeaders, "the headers"},

		{"versions of a module", proxy, false, always("", "v1.0.0\n", 200), files},
		{"major versions of a module", proxy, false, is("v1.0.0\n"), many},
		{"a page", proxy, true, always("", "x", 200), files},
		{"versions of a module itself", modules, false, always("", "v1.0.0\n", 200), files},
		{"major versions of a module itself", modules, false, is("v1.0.0\n"), many},

		{"a package", gitlab, true, always("", "x", 200), files},
		{"a compressed package", gitlab, true, bomb, files},
		{"a template", plain, true, always("", "x", 200), files},
		{"a compressed template", plain, true, bomb, files},
		{"a template that waits", plain, true, silent, slow},
	} {
		t.Run(tc.kind+" "+tc.reason, func(t *testing.T) {
			e := &endless{answer: tc.answer}
			server := httptest.NewServer(e)
			defer server.Close()
			limits := small()
			if tc.want == slow {
				limits.time = 50 * time.Millisecond
			}
			read := reader(t, tc.kind, strings.TrimPrefix(server.URL, "http://"), limits)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := read(t.Context(), tc.file)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
			// Buffers of connections hold some of what was sent; the server runs in this process.
			if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 || e.sent.Load() > 32<<20 || e.requests.Load() > 25 {
				t.Errorf("%d bytes were allocated, %d sent after %d requests", used, e.sent.Load(), e.requests.Load())
			}
		})
	}
}

// reader returns a function that reads a file, or lists versions, of a repository of a kind, with all hosts being one server.
func reader(t *testing.T, kind, host string, limits bounds) func(ctx context.Context, file bool) error {
	t.Helper()
	through := toServer{host}
	p := packages.Provider{Name: "x", Type: clusterctlv1.InfrastructureProviderType, URL: "https://github.com/org/x/releases/latest/components.yaml"}
	o := Options{HTTP: &http.Client{Transport: through}, RetryInterval: time.Millisecond, RetryTimeout: time.Minute}
	if kind == "proxy" || kind == "modules" {
		o.GoProxy = "https://proxy.example"
	}
	if kind == "gitlab" {
		p.URL = "https://gitlab.example.com/api/v4/projects/1/packages/generic/x/v1.0.0/components.yaml"
	}
	s := NewStore(o)
	s.fetch.transport.bounds = limits
	c, err := s.Open(p)
	if kind == "oci" {
		c, err = FromOCI(p, "registry.example/x/y", func(string) string { return "" }, through)
		if err == nil {
			r, _ := c.repo.(inBounds).Repository.(*oci)
			registry, _ := r.store.(registryStore)
			registry.limits = limits
			r.store = registry
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, file bool) error {
		switch {
		case kind == "plain":
			_, err = s.Content(ctx, "https://files.example/template.yaml")
		case kind == "modules":
			_, err = s.ModuleVersions(ctx, "example.com/x")
		case file:
			_, err = c.File(ctx, "v1.0.0", "components.yaml")
		default:
			_, err = c.Versions(ctx)
		}
		return err
	}
}

// TestVersionsWithoutEnd: a short list can be a long one in memory.
func TestVersionsWithoutEnd(t *testing.T) {
	many := strings.Repeat("v1.0.0\n", maxVersions+1)
	objects := "[" + strings.Repeat("0,", maxFields+1) + "0]"
	for _, tc := range []struct{ reason, kind, text string }{
		{"a module", "modules", many},
		{"tags", "oci", `{"tags":["v1"` + strings.Repeat(`,"v1"`, maxVersions) + `]}`},
		{"releases", "github", objects},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			server := httptest.NewServer(respond(http.StatusOK, tc.text))
			defer server.Close()
			err := reader(t, tc.kind, strings.TrimPrefix(server.URL, "http://"), storeBounds())(t.Context(), false)
			if exceeded := (*BoundsError)(nil); !errors.As(err, &exceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}
