package proxy

import (
	"bufio"
	"encoding/json"
	"net/http"

	"sigs.k8s.io/cluster-api/test/fault/request"
)

// frame is one event of a watch.
type frame struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// watch passes events on, one by one.
func (e *endpoint) watch(w http.ResponseWriter, h *http.Request, r request.Request) int {
	response, err := e.send(h.Context(), h)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = response.Body.Close() }()
	copyHeader(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			if r.Resource == "secrets" && e.workload == "" {
				line = e.redirectEvent(h, line)
			}
			if _, err := w.Write(line); err != nil {
				return response.StatusCode
			}
			flusher.Flush()
		}
		if err != nil {
			return response.StatusCode
		}
	}
}

// redirectEvent leads the kubeconfig of an event here. An event that cannot be read ends the watch.
func (e *endpoint) redirectEvent(h *http.Request, line []byte) []byte {
	f := frame{}
	if err := json.Unmarshal(line, &f); err != nil {
		panic(http.ErrAbortHandler)
	}
	object, err := e.proxy.redirect(h.Context(), f.Object)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	f.Object = object
	out, err := json.Marshal(f)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return append(out, '\n')
}
