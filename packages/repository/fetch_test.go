package repository

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

// TestSharedRequest: who gives up a request, or does not repeat it, does not decide for others that wait for it.
func TestSharedRequest(t *testing.T) {
	for reason, fail := range map[string]func(w http.ResponseWriter, r *http.Request, cancel context.CancelFunc){
		"it is canceled": func(_ http.ResponseWriter, r *http.Request, cancel context.CancelFunc) {
			cancel()
			<-r.Context().Done()
		},
		"it is not repeated": func(w http.ResponseWriter, _ *http.Request, _ context.CancelFunc) {
			w.WriteHeader(http.StatusServiceUnavailable)
		},
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(Once(t.Context()))
				defer cancel()
				started, proceed := make(chan struct{}), make(chan struct{})
				requests := 0
				f := newFetcher(Options{HTTP: &http.Client{Transport: handled(func(w http.ResponseWriter, r *http.Request) {
					if requests++; requests == 1 {
						close(started)
						<-proceed
						fail(w, r, cancel)
						return
					}
					fmt.Fprint(w, "good")
				})}})
				first, second := make(chan error, 1), make(chan string, 1)
				go func() { _, _, err := f.get(ctx, request{url: "https://example.com/x"}); first <- err }()
				<-started
				go func() {
					body, _, err := f.get(t.Context(), request{url: "https://example.com/x"})
					second <- fmt.Sprintf("%s %v", body, err)
				}()
				synctest.Wait() // The second waits for the first.
				close(proceed)
				if err := <-first; err == nil {
					t.Error("the first must fail")
				}
				if got := <-second; got != "good <nil>" || requests != 2 {
					t.Errorf("the second got %s, with %d requests", got, requests)
				}
			})
		})
	}
}

// handled is a transport without a network.
type handled http.HandlerFunc

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// TestCanceledRequest: what users have given up is not reported as retried.
func TestCanceledRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var reports []string
	f := newFetcher(Options{
		HTTP:   &http.Client{Transport: handled(func(http.ResponseWriter, *http.Request) { cancel() })},
		Report: func(format string, args ...any) { reports = append(reports, fmt.Sprintf(format, args...)) },
	})
	if _, _, err := f.get(ctx, request{url: "https://example.com/x"}); err == nil || reports != nil {
		t.Errorf("got error %v and the reports %q", err, reports)
	}
}
