package manual

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestServeHTTP(t *testing.T) {
	site := Site{"index.html": []byte("home"), "a.html": []byte("a"), "manual.css": []byte("c"), "manual.js": []byte("j")}
	for _, tc := range []struct {
		reason, method, path string
		code                 int
		kind, body           string
	}{
		{"the first page", "GET", "/", 200, "text/html; charset=utf-8", "home"},
		{"the first page by its name", "GET", "/index.html", 200, "text/html; charset=utf-8", "home"},
		{"a page", "GET", "/a.html", 200, "text/html; charset=utf-8", "a"},
		{"the style sheet", "GET", "/manual.css", 200, "text/css; charset=utf-8", "c"},
		{"the script", "GET", "/manual.js", 200, "text/javascript; charset=utf-8", "j"},
		{"only headers", "HEAD", "/a.html", 200, "text/html; charset=utf-8", ""},
		{"no such page", "GET", "/b.html", 404, "text/plain; charset=utf-8", "no such page"},
		{"no file system", "GET", "/../../etc/passwd", 404, "text/plain; charset=utf-8", "no such page"},
		{"nothing can be written", "POST", "/a.html", 405, "text/plain; charset=utf-8", "only GET and HEAD"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := httptest.NewRecorder()
			site.ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, http.NoBody))
			if w.Code != tc.code || w.Header().Get("Content-Type") != tc.kind || !strings.HasPrefix(w.Body.String(), tc.body) {
				t.Errorf("got %d, %s, %q", w.Code, w.Header().Get("Content-Type"), w.Body.String())
			}
			if got := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; script-src 'self'; style-src 'self'") {
				t.Errorf("the policy is %q", got)
			}
		})
	}
}
