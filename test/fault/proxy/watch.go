package proxy

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/test/fault/script"
)

// frame is one event of a watch.
type frame struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// timed is an event and when it was received.
type timed struct {
	line []byte
	at   time.Time
}

// watch forwards events, one by one, as faults permit.
func (e *endpoint) watch(w http.ResponseWriter, h *http.Request, r script.Request) int {
	e.remember(h, r)
	kind := r.Kind()
	listing := kind
	listing.Verb = "list"
	ongoing := e.proxy.options.Scripts.Ongoing()
	if h.URL.Query().Get("sendInitialEvents") == "true" && ongoing.HasStale(listing) {
		// The manager falls back to a list.
		status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid).write(w)
		return http.StatusUnprocessableEntity
	}
	ctx, cancel := context.WithCancel(h.Context())
	defer cancel()
	response, err := e.send(ctx, h)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = response.Body.Close() }()
	copyHeader(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	_ = http.NewResponseController(w).Flush()
	events := make(chan timed)
	go func() {
		defer close(events)
		e.read(ctx, h, r, response.Body, events)
	}()
	e.deliver(ctx, w, kind, ongoing, events)
	return response.StatusCode
}

// read reads events without waiting for their delivery. The queue is unbounded.
func (e *endpoint) read(ctx context.Context, h *http.Request, r script.Request, body io.Reader, events chan<- timed) {
	incoming := make(chan timed)
	go func() {
		defer close(incoming)
		lines := bufio.NewReader(body)
		for {
			line, err := lines.ReadBytes('\n')
			if len(line) > 0 {
				if r.Resource == "secrets" && e.workload == "" {
					line, err = e.redirectEvent(h, line)
				}
				select {
				case incoming <- timed{line: line, at: time.Now()}:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	var queue []timed
	for incoming != nil || len(queue) > 0 {
		var out chan<- timed
		var next timed
		if len(queue) > 0 {
			out, next = events, queue[0]
		}
		select {
		case one, open := <-incoming:
			if !open {
				incoming = nil
				continue
			}
			queue = append(queue, one)
		case out <- next:
			queue = queue[1:]
		case <-ctx.Done():
			return
		}
	}
}

// deliver writes events until the watch ends.
func (e *endpoint) deliver(ctx context.Context, w http.ResponseWriter, kind script.Kind, ongoing *script.Ongoing, events <-chan timed) {
	var next *timed
	for {
		delivery := ongoing.Delivery(kind, e.namespace)
		if delivery.Gone {
			_, _ = w.Write(expired()) // The watch ends anyway.
		}
		if delivery.Gone || delivery.Cut {
			return
		}
		hold := delivery.Hold
		if next != nil {
			hold = max(hold, time.Until(next.at.Add(delivery.Delay)))
		}
		if hold > 0 {
			select {
			case <-ctx.Done():
				return
			case <-delivery.Changed:
			case <-time.After(hold):
			}
			continue
		}
		if next != nil {
			if _, err := w.Write(next.line); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			next = nil
			ongoing.Delivered(kind)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-delivery.Changed:
		case one, open := <-events:
			if !open {
				return
			}
			next = &one
		}
	}
}

// expired returns the event that ends a watch whose resource version is too old.
func expired() []byte {
	a := status(http.StatusGone, metav1.StatusReasonExpired)
	line, err := json.Marshal(frame{Type: "ERROR", Object: a.body})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return append(line, '\n')
}

// redirectEvent is redirect for the object of an event.
func (e *endpoint) redirectEvent(h *http.Request, line []byte) ([]byte, error) {
	f := frame{}
	if err := json.Unmarshal(line, &f); err != nil {
		return nil, err
	}
	object, err := e.proxy.redirect(h.Context(), f.Object)
	if err != nil {
		return nil, err
	}
	f.Object = object
	out, err := json.Marshal(f)
	return append(out, '\n'), err
}
