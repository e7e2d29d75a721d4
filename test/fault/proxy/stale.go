package proxy

import (
	"context"
	"net/http"
	"net/url"

	"sigs.k8s.io/cluster-api/test/fault/request"
)

// list is how a manager requests the list of a kind.
type list struct {
	url    url.URL
	accept string
}

// remember stores how a manager requests a list, so that snapshot can request it.
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

// snapshot saves the current lists of some kinds.
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
			continue // Then the manager gets the current list.
		}
		e.mu.Lock()
		e.stale[kind] = a
		e.mu.Unlock()
	}
}

// staleList returns the saved list of a kind, if a fault requires it.
func (e *endpoint) staleList(kind request.Kind) *answer {
	if !e.proxy.options.Scripts.Ongoing().TakeStale(kind) {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stale[kind]
}
