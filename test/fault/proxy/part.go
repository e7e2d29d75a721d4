package proxy

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/request"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// blocked deals with a request that gets no answer, because the manager is parted from where it goes.
func (e *endpoint) blocked(w http.ResponseWriter, h *http.Request, r request.Request) bool {
	how, remaining := e.proxy.options.Stage.Views().Blocked(r.Kind(), e.home)
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
	case script.Flood:
		flood(w, h, r, remaining)
	}
	panic(http.ErrAbortHandler)
}

// flood answers without end: a list with more and more items, or an object that becomes larger and larger, or events, until
// the manager has had enough.
func flood(w http.ResponseWriter, h *http.Request, r request.Request, d time.Duration) {
	ctx, cancel := context.WithTimeout(h.Context(), d)
	defer cancel()
	kind, known := map[string]string{"nodes": "Node", "pods": "Pod"}[r.Resource]
	if !known {
		kind = "ConfigMap"
	}
	object := func(n int) string {
		const size = 4 << 10
		return fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"name":"flood-%d","namespace":"default","uid":"%d","resourceVersion":"%d","annotations":{"a":%q}}}`,
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
