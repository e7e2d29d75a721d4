package proxy

import (
	"context"
	"net/http"
	"net/url"

	"sigs.k8s.io/cluster-api/test/fault/script"
)

// list identifies a list that a manager requests. A kind may have several, with other selectors.
type list struct {
	kind script.Kind
	// url is its path and its selectors.
	url string
}

// listOf returns the list of a request to list or watch.
func listOf(h *http.Request, r script.Request) list {
	kept := url.Values{}
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if value := h.URL.Query().Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	kind := r.Kind()
	kind.Verb = "list"
	return list{kind: kind, url: (&url.URL{Path: h.URL.Path, RawQuery: kept.Encode()}).String()}
}

// remember stores that a manager watches a list, so that snapshot can request it. Lists that are not watched are not in a cache.
func (e *endpoint) remember(h *http.Request, r script.Request) {
	if r.Namespace != "" {
		return // Caches list all namespaces.
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lists[listOf(h, r)] = h.Header.Get("Accept")
}

// snapshot saves the current lists of some kinds.
func (e *endpoint) snapshot(on script.Kind) {
	on.Verb = "list"
	e.mu.Lock()
	wanted := map[list]string{}
	for l, accept := range e.lists {
		if on.Selects(l.kind) {
			wanted[l] = accept
		}
	}
	e.mu.Unlock()
	for l, accept := range wanted {
		h, err := http.NewRequestWithContext(context.Background(), http.MethodGet, l.url, http.NoBody)
		if err != nil {
			continue
		}
		h.Header.Set("Accept", accept)
		a, err := e.forward(h, script.Request{Verb: "list", Resource: l.kind.Resource})
		if err != nil || a.code != http.StatusOK {
			continue // Then the manager gets the current list.
		}
		e.mu.Lock()
		e.stale[l] = a
		e.mu.Unlock()
	}
}

// staleList returns the saved list for a request, if a fault requires it.
func (e *endpoint) staleList(h *http.Request, r script.Request) *answer {
	l := listOf(h, r)
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, watched := e.lists[l]; !watched || !e.proxy.options.Scripts.Ongoing().TakeStale(l.kind) {
		return nil
	}
	return e.stale[l]
}
