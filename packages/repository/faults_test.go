package repository

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Paths of requests for a file of a release; the first one is only used with a Go module proxy.
const (
	faultyPage    = "github.com/org/capa/releases/download/v1.0.0/x.yaml"
	faultyRelease = "api.github.com/repos/org/capa/releases/tags/v1.0.0"
	faultyAsset   = "api.github.com/repos/org/capa/releases/assets/7"
	faultyGitLab  = "gitlab.example.com/api/v4/projects/a%2Fb/packages/generic/capa/v1.0.0/x.yaml"
)

// respond returns a handler with a status, header and body.
func respond(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// cut sends less than it announced.
func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	fmt.Fprint(w, "half")
}

// hang sends a part of the file, and the rest never.
func hang(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, "half")
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// first fails a number of times, and succeeds afterwards.
func first(failures int, failure http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if failures--; failures >= 0 {
			failure(w, r)
			return
		}
		fmt.Fprint(w, "good")
	}
}

func loop(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "https://"+r.Header.Get("X-Test-Host")+r.URL.RequestURI(), http.StatusFound)
}

func TestFaults(t *testing.T) {
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	release := func(digest string) http.HandlerFunc {
		return respond(http.StatusOK, `{"assets":[{"id":7,"name":"x.yaml","digest":"`+digest+`"}]}`)
	}
	exceeded := []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(now.Add(20 * time.Minute).Unix())}
	type handlers map[string]http.HandlerFunc
	asset := func(h http.HandlerFunc) handlers { return handlers{faultyRelease: release(""), faultyAsset: h} }
	page := func(h http.HandlerFunc) handlers { return handlers{faultyPage: h} }
	const withProxy, withToken = "proxy", "token"
	for _, tc := range []struct {
		reason   string
		handlers handlers
		options  string
		// want is the error; empty: the file is read.
		want string
		// requests is the number of requests, if it matters.
		requests int
	}{
		{"the primary rate limit names its end", handlers{faultyRelease: respond(403, "", exceeded...)}, "", "403 Forbidden: the rate limit of GitHub's API is exceeded: set GITHUB_TOKEN to a personal access token, or wait until 2030-01-02T12:20:00Z (20m)", 1},
		{"with a token, another one does not help by itself", handlers{faultyRelease: respond(403, "", exceeded...)}, withToken, "for the token in GITHUB_TOKEN is exceeded: wait until 2030-01-02T12:20:00Z (20m), or use another token", 1},
		{"the secondary rate limit names a delay", handlers{faultyRelease: respond(403, "", "Retry-After", "60")}, "", "the rate limit of GitHub's API for bursts of requests is exceeded: wait 1m0s, and run fewer commands at once", 1},
		{"429 is a rate limit, too", handlers{faultyRelease: respond(429, "")}, "", "429 Too Many Requests: the rate limit of GitHub's API is exceeded: set GITHUB_TOKEN to a personal access token, or wait", 1},
		{"403 without limit is a matter of permissions", handlers{faultyRelease: respond(403, "")}, "", "403 Forbidden: check that GITHUB_TOKEN is set, is valid, and allows reading the repository", 1},
		{"401 is a matter of the token", handlers{faultyRelease: respond(401, "")}, withToken, "401 Unauthorized: check that GITHUB_TOKEN is set, is valid, and allows reading the repository", 1},
		{"404 is not retried", handlers{}, "", "org/capa has no release v1.0.0: GET https://api.github.com/repos/org/capa/releases/tags/v1.0.0: 404 Not Found: not found", 1},
		{"5xx is retried until it is good", asset(first(2, respond(503, ""))), "", "", 4},
		{"5xx for ever", asset(respond(502, "")), "", "502 Bad Gateway: the server is overloaded or down: try again later (after ", 0},
		{"429 of others is retried", page(first(1, respond(429, ""))), withProxy, "", 2},
		{"a cut connection is retried", asset(first(1, cut)), "", "", 3},
		{"connections that are always cut", page(cut), withProxy, "the download ended after 4 bytes: unexpected EOF (after ", 0},
		{"a server that stops sending", page(hang), withProxy, "check the connection, or set a reachable url for the provider", 0},
		{"the recorded checksum matches", handlers{faultyRelease: release(fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("good")))), faultyAsset: respond(200, "good")}, "", "", 2},
		{"a wrong checksum", handlers{faultyRelease: release("sha256:0123"), faultyAsset: respond(200, "good")}, "", "but GitHub has recorded 0123: run the command again; if the error persists, check whether a proxy changes downloads", 2},
		{"a redirect is followed", handlers{faultyRelease: release(""), faultyAsset: http.RedirectHandler("https://files.example/x", http.StatusFound).ServeHTTP, "files.example/x": respond(200, "good")}, withToken, "", 3},
		{"redirects in a circle end, without retries", page(loop), withProxy, "too many redirects: check the URL, and whether a proxy or a login page is in between", maxRedirects},
		{"a huge file is not read to its end", page(respond(200, strings.Repeat("x", 2000))), withProxy, "the file is larger than 1Ki: check that it is the address of a provider's releases", 1},
		{"a login page instead of YAML", page(respond(200, "\n<!DOCTYPE html><html>Log in</html>")), withProxy, "the server responded with an HTML page instead of the file: check the URL, and whether a proxy or a login page is in between", 1},
		{"a page instead of JSON", handlers{faultyRelease: respond(200, "<html></html>")}, "", "the server responded with an HTML page instead of the file", 1},
		{"something else instead of JSON", handlers{faultyRelease: respond(200, "[]")}, "", "unexpected response: json: cannot unmarshal array", 1},
		{"an unexpected status", page(respond(418, "")), withProxy, "418 I'm a teapot: unexpected response: check the URL", 1},
		{"private packages of GitLab", handlers{faultyGitLab: respond(401, "")}, "gitlab", "401 Unauthorized: the server requires credentials, which clusterctl does not have: download the files into a local repository instead", 1},
		{"packages of GitLab that come late", handlers{faultyGitLab: first(3, respond(500, ""))}, "gitlab", "", 4},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				host := r.Header.Get("X-Test-Host")
				if host == "files.example" && r.Header.Get("Authorization") != "" {
					t.Errorf("the token was sent to %s", host)
				}
				if h, ok := tc.handlers[host+r.URL.RequestURI()]; ok {
					h(w, r)
					return
				}
				http.NotFound(w, r)
			}))
			t.Cleanup(server.Close)
			o := Options{
				HTTP:          &http.Client{Transport: toServer{strings.TrimPrefix(server.URL, "http://")}, Timeout: 200 * time.Millisecond},
				RetryInterval: time.Millisecond, RetryTimeout: 400 * time.Millisecond, Now: func() time.Time { return now },
			}
			address := awsLatest
			switch tc.options {
			case withProxy:
				o.GoProxy = "https://proxy.example"
			case withToken:
				o.GitHubToken = "secret"
			case "gitlab":
				address = "https://" + faultyGitLab
			}
			store := NewStore(o)
			store.fetch.transport.file = 1 << 10
			c, err := store.Open(aws(address))
			if err != nil {
				t.Fatal(err)
			}
			raw, err := c.File(t.Context(), "v1.0.0", "x.yaml")
			if tc.want == "" && (err != nil || string(raw) != "good") {
				t.Errorf("want the file, got %q, %v", raw, err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("want an error with %q, got: %v", tc.want, err)
			}
			if tc.requests != 0 && requests != tc.requests {
				t.Errorf("want %d requests, got %d", tc.requests, requests)
			}
		})
	}
}
