package serving

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// Health serves a health endpoint: 200 if all checks pass, otherwise 500 with the reasons. Like those of Kubernetes
// it lists every check with ?verbose, skips a check with ?exclude=NAME, and serves single checks
// under <path>/NAME. Reasons are in the response and, when they change, in the log, to debug failing probes.
type Health struct {
	path   string
	checks map[string]healthz.Checker
	log    logr.Logger

	mu     sync.Mutex
	logged string
}

// NewHealth returns the handler of a path such as /readyz. Checks may be added until it is served.
func NewHealth(path string, checks map[string]healthz.Checker, log logr.Logger) *Health {
	return &Health{path: path, checks: checks, log: log}
}

// Register serves the path and what is below it.
func (h *Health) Register(mux *http.ServeMux) {
	mux.Handle(h.path, h)
	mux.HandleFunc(h.path+"/{check}", h.one)
}

// ServeHTTP serves all checks together.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var lines, failures []string
	for _, name := range slices.Sorted(maps.Keys(h.checks)) {
		if slices.Contains(query["exclude"], name) {
			lines = append(lines, fmt.Sprintf("[+]%s excluded", name))
			continue
		}
		if err := h.checks[name](r); err != nil {
			lines = append(lines, fmt.Sprintf("[-]%s failed: %v", name, err))
			failures = append(failures, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		lines = append(lines, fmt.Sprintf("[+]%s ok", name))
	}
	h.report(strings.Join(failures, "; "))
	report := strings.Join(append(lines, ""), "\n")
	switch {
	case len(failures) > 0:
		http.Error(w, report+h.path+" failed", http.StatusInternalServerError)
	case query.Has("verbose"):
		_, _ = io.WriteString(w, report+h.path+" passed\n")
	default:
		_, _ = io.WriteString(w, "ok")
	}
}

func (h *Health) one(w http.ResponseWriter, r *http.Request) {
	check, found := h.checks[r.PathValue("check")]
	if !found {
		http.NotFound(w, r)
		return
	}
	if err := check(r); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, "ok")
}

// report logs changes of the failures.
func (h *Health) report(wrong string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if wrong == h.logged {
		return
	}
	h.logged = wrong
	if wrong == "" {
		h.log.Info("Health checks pass", "path", h.path)
		return
	}
	h.log.Info("Health checks fail", "path", h.path, "reason", wrong)
}
