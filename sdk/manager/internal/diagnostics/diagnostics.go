// Package diagnostics has the HTTP handlers for a manager's diagnostics: metrics, profiles, and the
// log level.
//
// Authentication and authorization do not belong here.
package diagnostics

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxLevel is the maximum length of a log level.
const maxLevel = 64

// SetVerbosity sets the log level of the process, and returns the text of the response.
type SetVerbosity func(level string) (string, error)

// Metrics serves /metrics.
func Metrics(from prometheus.Gatherer) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(from, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	return mux
}

// Profiles serves /debug/pprof/.
func Profiles() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// All serves metrics, profiles and, unless set is nil, PUT /debug/flags/v with a log level as the body.
func All(from prometheus.Gatherer, set SetVerbosity) *http.ServeMux {
	mux := Metrics(from)
	mux.Handle("/debug/pprof/", Profiles())
	if set != nil {
		mux.Handle("PUT /debug/flags/v", verbosity(set))
	}
	return mux
}

func verbosity(set SetVerbosity) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		level, err := io.ReadAll(io.LimitReader(r.Body, maxLevel))
		if err != nil {
			http.Error(w, fmt.Sprintf("reading the log level: %v", err), http.StatusBadRequest)
			return
		}
		answer, err := set(string(level))
		if err != nil {
			http.Error(w, fmt.Sprintf("the body must be a log level such as 4: %v", err), http.StatusBadRequest)
			return
		}
		fmt.Fprintln(w, answer)
	})
}
