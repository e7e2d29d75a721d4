package serving_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"sigs.k8s.io/cluster-api/sdk/manager/internal/serving"
)

func passes(*http.Request) error { return nil }

func fails(*http.Request) error { return errors.New("no certificate yet") }

func TestHealth(t *testing.T) {
	type answer struct {
		Code int
		Body string
	}
	tests := map[string]struct {
		reason string
		checks map[string]healthz.Checker
		url    string
		want   answer
	}{
		"no checks":    {"nothing to check is nothing wrong", nil, "/readyz", answer{200, "ok"}},
		"passing":      {"probes need no details", map[string]healthz.Checker{"webhook": passes}, "/readyz", answer{200, "ok"}},
		"verbose":      {"details are available", map[string]healthz.Checker{"webhook": passes, "own": passes}, "/readyz?verbose", answer{200, "[+]own ok\n[+]webhook ok\n/readyz passed\n"}},
		"failing":      {"the reason is shown", map[string]healthz.Checker{"webhook": fails, "own": passes}, "/readyz", answer{500, "[+]own ok\n[-]webhook failed: no certificate yet\n/readyz failed\n"}},
		"excluded":     {"a check can be skipped", map[string]healthz.Checker{"webhook": fails, "own": passes}, "/readyz?exclude=webhook", answer{200, "ok"}},
		"one passing":  {"a single check", map[string]healthz.Checker{"webhook": fails, "own": passes}, "/readyz/own", answer{200, "ok"}},
		"one failing":  {"with its reason", map[string]healthz.Checker{"webhook": fails, "own": passes}, "/readyz/webhook", answer{500, "no certificate yet\n"}},
		"none of them": {"a check that does not exist does not pass", nil, "/readyz/webhook", answer{404, "404 page not found\n"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			serving.NewHealth("/readyz", tt.checks, logr.Discard()).Register(mux)
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, tt.url, nil))
			if diff := cmp.Diff(tt.want, answer{w.Code, w.Body.String()}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestHealthLogsChanges(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	check := fails
	h := serving.NewHealth("/readyz", map[string]healthz.Checker{"webhook": func(r *http.Request) error { return check(r) }}, log)
	ask := func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/readyz", nil)) }
	ask()
	ask()
	check = passes
	ask()
	ask()
	want := []string{
		`"level"=0 "msg"="Health checks fail" "path"="/readyz" "reason"="webhook: no certificate yet"`,
		`"level"=0 "msg"="Health checks pass" "path"="/readyz"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("however often it is asked, only changes are logged (-want +got):\n%s", diff)
	}
}
