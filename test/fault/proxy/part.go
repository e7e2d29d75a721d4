package proxy

import (
	"net/http"

	"sigs.k8s.io/cluster-api/test/fault/request"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// blocked deals with a request that gets no answer, because the manager is parted from where it goes.
func (e *endpoint) blocked(w http.ResponseWriter, h *http.Request, r request.Request) bool {
	if e.workload != "" && !e.proxy.options.Stage.Plays(e.home) {
		return false // Another run's cluster.
	}
	how, remaining := e.proxy.options.Stage.Views().Blocked(r.Kind())
	switch how {
	case "":
		return false
	case script.Blind:
		pause(h.Context(), remaining)
	case script.Hang:
		if a, err := e.forward(h, r); err == nil {
			w.Header().Set("Content-Type", a.header.Get("Content-Type"))
			w.WriteHeader(a.code)
			_, _ = w.Write(a.body[:len(a.body)/2]) // It is to break anyway.
			_ = http.NewResponseController(w).Flush()
		}
		pause(h.Context(), remaining)
	}
	panic(http.ErrAbortHandler)
}
