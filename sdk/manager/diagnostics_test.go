package manager

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestDiagnosticsHandlers(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "answers_total", Help: "Test."}))
	set := func(level string) (string, error) {
		if level != "8" {
			return "", errors.New("not a number")
		}
		return "set to " + level, nil
	}
	all := diagnosticsHandler(registry, set)
	tests := map[string]struct {
		reason         string
		handler        http.Handler
		method, path   string
		body           string
		want           int
		wantBodyToHold string
	}{
		"metrics": {
			reason:  "metrics are those of the registry",
			handler: all, path: "/metrics", want: 200, wantBodyToHold: "answers_total 0",
		},
		"goroutines": {
			reason:  "the book's example works",
			handler: all, path: "/debug/pprof/goroutine?debug=2", want: 200, wantBodyToHold: "goroutine ",
		},
		"command line": {
			reason:  "it shows how the process was started",
			handler: all, path: "/debug/pprof/cmdline", want: 200, wantBodyToHold: "test",
		},
		"level": {
			reason:  "the level is changed and the change reported",
			handler: all, method: http.MethodPut, path: "/debug/flags/v", body: "8", want: 200, wantBodyToHold: "set to 8",
		},
		"wrong level": {
			reason:  "an invalid level is reported",
			handler: all, method: http.MethodPut, path: "/debug/flags/v", body: "lots", want: 400, wantBodyToHold: "must be a log level",
		},
		"level read": {
			reason:  "the level can only be set",
			handler: all, path: "/debug/flags/v", want: 405,
		},
		"level not changeable": {
			reason:  "in a shared process, a component cannot change the level",
			handler: diagnosticsHandler(registry, nil), method: http.MethodPut, path: "/debug/flags/v", body: "8", want: 404,
		},
		"insecure profiles": {
			reason:  "there are no profiles with plain metrics",
			handler: metricsHandler(registry), path: "/debug/pprof/goroutine", want: 404,
		},
		"insecure level": {
			reason:  "there is no log level with plain metrics",
			handler: metricsHandler(registry), method: http.MethodPut, path: "/debug/flags/v", body: "8", want: 404,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			method := tt.method
			if method == "" {
				method = http.MethodGet
			}
			w := httptest.NewRecorder()
			tt.handler.ServeHTTP(w, httptest.NewRequest(method, tt.path, strings.NewReader(tt.body)))
			if diff := cmp.Diff(tt.want, w.Code); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%s", tt.reason, diff, w.Body)
			}
			if !strings.Contains(w.Body.String(), tt.wantBodyToHold) {
				t.Errorf("%s: got\n%s", tt.reason, w.Body)
			}
		})
	}
}
