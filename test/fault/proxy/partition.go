package proxy

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/script"
)

// blocked handles a request to an unreachable API server. It returns false if there is no partition.
func (e *endpoint) blocked(w http.ResponseWriter, h *http.Request, r script.Request) bool {
	how, remaining := e.proxy.options.Scripts.Ongoing().Blocked(r.Kind(), e.namespace)
	switch how {
	case "":
		return false
	case script.Blind:
		pause(h.Context(), remaining)
	case script.Hang:
		if a, err := e.forward(h, r); err == nil {
			w.Header().Set("Content-Type", a.header.Get("Content-Type"))
			w.WriteHeader(a.code)
			_, _ = w.Write(a.body[:len(a.body)/2]) // The connection breaks anyway.
			_ = http.NewResponseController(w).Flush()
		}
		pause(h.Context(), remaining)
	case script.Flood:
		flood(w, h, r, remaining)
	}
	panic(http.ErrAbortHandler)
}

// flood sends an endless response until the manager closes the connection: a list with ever more items, an object that grows,
// or events.
func flood(w http.ResponseWriter, h *http.Request, r script.Request, d time.Duration) {
	ctx, cancel := context.WithTimeout(h.Context(), d)
	defer cancel()
	kind, known := map[string]string{"nodes": "Node", "pods": "Pod"}[r.Resource]
	if !known {
		kind = "ConfigMap"
	}
	object := func(n int) string {
		const size = 4 << 10
		return fmt.Sprintf(
			`{"kind":%q,"apiVersion":"v1","metadata":{"name":"flood-%d","namespace":"default","uid":"%d",`+
				`"resourceVersion":"%d","annotations":{"a":%q}}}`,
			kind, n, n, n+1, strings.Repeat("a", size))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	switch r.Verb {
	case "watch":
	case "list":
		_, _ = fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[%s`, kind, object(0))
	default:
		_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":"v1","metadata":{"name":%q},"data":{"a":"`, kind, r.Name)
	}
	for n := 1; ctx.Err() == nil; n++ {
		piece := &bytes.Buffer{}
		switch r.Verb {
		case "watch":
			fmt.Fprintf(piece, `{"type":"ADDED","object":%s}`+"\n", object(n))
		case "list":
			piece.WriteString("," + object(n))
		default:
			piece.WriteString(strings.Repeat("a", 4<<10))
		}
		if _, err := w.Write(piece.Bytes()); err != nil {
			return
		}
	}
}
