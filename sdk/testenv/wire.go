package testenv

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// ErrKilled is the error of requests after the end of a Wire.
var ErrKilled = errors.New("the process was killed")

// Wire counts the requests of one run of a program, and can cut them off, as if the program were killed. Wrap adds it to a
// client; one Wire can serve the clients of several clusters.
type Wire struct {
	// Limit is how many requests are made; negative means all. If Lose is true, the next one is made, too, but its response is
	// lost. Afterwards all requests fail with ErrKilled, and Dead is called, unless it is nil.
	Limit int
	Lose  bool
	Dead  func()
	// Until, if not empty, sets the limit to the first request whose method and URI contain it.
	Until string
	// Before, if not nil, is called with the method and URI of each request before it is made; the request waits for it.
	Before func(request string)

	mu  sync.Mutex
	log []string
}

// Log returns the requests, as method and URI, including those that were cut off.
func (w *Wire) Log() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

// Last returns the request that was cut off first.
func (w *Wire) Last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if log := w.log; w.Limit >= 0 && w.Limit < len(log) {
		return log[w.Limit]
	}
	return "the last request"
}

// Wrap returns a transport, for rest.Config.Wrap.
func (w *Wire) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		w.mu.Lock()
		n := len(w.log)
		w.log = append(w.log, r.Method+" "+r.URL.RequestURI())
		if w.Limit < 0 && w.Until != "" && strings.Contains(w.log[n], w.Until) {
			w.Limit = n
		}
		limit := w.Limit
		w.mu.Unlock()
		if w.Before != nil {
			w.Before(r.Method + " " + r.URL.RequestURI())
		}
		switch {
		case limit < 0 || n < limit:
			return next.RoundTrip(r)
		case n == limit && w.Lose:
			if response, err := next.RoundTrip(r); err == nil {
				if !r.URL.Query().Has("watch") { // A watch has no end.
					_, _ = io.Copy(io.Discard, response.Body)
				}
				response.Body.Close()
			}
		}
		if w.Dead != nil {
			w.Dead()
		}
		return nil, ErrKilled
	})
}
