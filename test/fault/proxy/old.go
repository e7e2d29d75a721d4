package proxy

import (
	"context"
	"net/http"
	"net/url"

	"sigs.k8s.io/cluster-api/test/fault/request"
)

// list is how a manager asks for the list of a kind.
type list struct {
	url    url.URL
	accept string
}

// remember notes how a manager asks for a list, so that it can be asked for at another time.
func (e *endpoint) remember(h *http.Request, r request.Request) {
	if r.Namespace != "" {
		return // Caches list all namespaces.
	}
	kept := url.Values{}
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if value := h.URL.Query().Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	kind := r.Kind()
	kind.Verb = "list"
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lists[kind] = list{url: url.URL{Path: h.URL.Path, RawQuery: kept.Encode()}, accept: h.Header.Get("Accept")}
}

// snapshot keeps the lists of some kinds as they are now.
func (e *endpoint) snapshot(on request.Kind) {
	on.Verb = "list"
	e.mu.Lock()
	wanted := map[request.Kind]list{}
	for kind, l := range e.lists {
		if on.Selects(kind) {
			wanted[kind] = l
		}
	}
	e.mu.Unlock()
	for kind, l := range wanted {
		h, err := http.NewRequestWithContext(context.Background(), http.MethodGet, l.url.String(), http.NoBody)
		if err != nil {
			continue
		}
		h.Header.Set("Accept", l.accept)
		a, err := e.forward(h, request.Request{Verb: "list", Resource: kind.Resource})
		if err != nil || a.code != http.StatusOK {
			continue // Then the list is answered as it is.
		}
		e.mu.Lock()
		e.olds[kind] = a
		e.mu.Unlock()
	}
}

// old is the list of a kind as it was, if the manager is to see it.
func (e *endpoint) old(kind request.Kind) *answer {
	if !e.proxy.options.Stage.Views().TakeOld(kind) {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.olds[kind]
}
