package manager

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxLogLevel is the maximum length of a log level.
const maxLogLevel = 64

// setVerbosity sets the log level of the process, and returns the text of the response.
type setVerbosity func(level string) (string, error)

// metricsHandler serves /metrics. Like the other handlers of diagnostics, it leaves authentication and authorization to its caller.
func metricsHandler(from prometheus.Gatherer) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(from, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	return mux
}

// profilesHandler serves /debug/pprof/.
func profilesHandler() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// diagnosticsHandler serves metrics, profiles and, unless set is nil, PUT /debug/flags/v with a log level as the body.
func diagnosticsHandler(from prometheus.Gatherer, set setVerbosity) *http.ServeMux {
	mux := metricsHandler(from)
	mux.Handle("/debug/pprof/", profilesHandler())
	if set != nil {
		mux.Handle("PUT /debug/flags/v", verbosityHandler(set))
	}
	return mux
}

func verbosityHandler(set setVerbosity) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		level, err := io.ReadAll(io.LimitReader(r.Body, maxLogLevel))
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
