package manual

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// policy lets pages load only files of the site, and forbids other sites to embed them.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP serves the files of the site. Paths are names of files; there is no file system behind them.
func (s Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-cache") // Another version may be served at this address later.
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are supported", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = home
	}
	content, ok := s[name]
	if !ok {
		http.Error(w, "no such page: see / for the table of contents", http.StatusNotFound)
		return
	}
	header.Set("Content-Type", contentType(name))
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}

// contentType returns the type of a file, whatever the types of the system are.
func contentType(name string) string {
	switch {
	case strings.HasSuffix(name, ".css"):
		return "text/css; charset=utf-8"
	case strings.HasSuffix(name, ".js"):
		return "text/javascript; charset=utf-8"
	}
	return "text/html; charset=utf-8"
}
