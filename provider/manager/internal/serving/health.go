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

// Health answers a health endpoint: 200 when all checks pass, 500 with the reasons otherwise. Like those of Kubernetes
// it lists every check when asked with ?verbose, leaves a check out with ?exclude=NAME, and answers for a single check
// under <path>/NAME. Reasons are shown and, when they change, logged, because whoever sees a failing probe needs them.
type Health struct {
	path   string
	checks map[string]healthz.Checker
	log    logr.Logger

	mu     sync.Mutex
	logged string
}

// NewHealth makes the handler of a path such as /readyz. Checks may be added until it is served.
func NewHealth(path string, checks map[string]healthz.Checker, log logr.Logger) *Health {
	return &Health{path: path, checks: checks, log: log}
}

// Register serves the path and what is below it.
func (h *Health) Register(mux *http.ServeMux) {
	mux.Handle(h.path, h)
	mux.HandleFunc(h.path+"/{check}", h.one)
}

// ServeHTTP answers for all checks together.
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

// report logs what is wrong, once.
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
