package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/script"
)

const machines = "/apis/cluster.x-k8s.io/v1beta1/machines"

// source is an API server whose watch sends the events of a channel, and whose list has the number of requests for it.
type source struct {
	*httptest.Server
	events chan string
	// ended gets a value for each watch that has ended: it takes no more events.
	ended chan struct{}
	lists int
}

func newSource(t *testing.T) *source {
	s := &source{events: make(chan string), ended: make(chan struct{}, 100)}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPatch:
			_, _ = io.WriteString(w, body)
		case r.URL.Query().Get("watch") != "true":
			s.lists++
			fmt.Fprintf(w, `{"kind":"MachineList","items":[],"asked":%d}`, s.lists)
		default:
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			for {
				select {
				case e := <-s.events:
					fmt.Fprintf(w, `{"type":"ADDED","object":%q}`+"\n", e)
					_ = http.NewResponseController(w).Flush()
				case <-r.Context().Done():
					s.ended <- struct{}{}
					return
				}
			}
		}
	}))
	t.Cleanup(s.CloseClientConnections)
	return s
}

// watching is a manager's watch.
type watching struct {
	t     *testing.T
	lines chan string
}

func (m *manager) watch(t *testing.T) *watching {
	t.Helper()
	response := m.get(t, machines+"?watch=true")
	w := &watching{t: t, lines: make(chan string, 100)}
	go func() {
		defer close(w.lines)
		defer func() { _ = response.Body.Close() }()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			w.lines <- lines.Text()
		}
	}()
	return w
}

func (m *manager) get(t *testing.T, path string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := m.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func (m *manager) list(t *testing.T) string {
	t.Helper()
	response := m.get(t, machines)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// sees waits for the next line, or for the end if want is "".
func (w *watching) sees(want string) {
	w.t.Helper()
	select {
	case line := <-w.lines:
		if !strings.Contains(line, want) || want == "" && line != "" {
			w.t.Fatalf("the watch got %q, want %q", line, want)
		}
	case <-time.After(time.Minute):
		w.t.Fatalf("the watch did not get %q", want)
	}
}

// trigger returns a fault that begins with the next write and affects watches of Machines.
func trigger(do script.Action, d time.Duration, after int) script.Fault {
	return script.Fault{
		When: script.Kind{Manager: "m", Verb: "patch", Resource: "machines"}, Nth: 1, Do: do, For: d, After: after,
		On: script.Kind{Manager: "m", Resource: "machines"},
	}
}

func start(t *testing.T, f script.Fault) (*source, *manager) {
	t.Helper()
	s := newSource(t)
	return s, newManager(t, &upstream{Server: s.Server}, f)
}

func (m *manager) write(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if code, answer, err := m.patch(ctx); err != nil || code != http.StatusOK {
		t.Fatalf("the write failed: %d, %s, %v", code, answer, err)
	}
}

func TestWatchFreezesAndContinues(t *testing.T) {
	s, m := start(t, trigger(script.Freeze, 300*time.Millisecond, 1))
	w := m.watch(t)
	s.events <- "before"
	w.sees("before")
	began := time.Now() // Before the fault begins: in a slow test, the freeze must not seem too short.
	m.write(t)
	s.events <- "delivered"
	w.sees("delivered")
	s.events <- "late"
	s.events <- "later"
	w.sees("late")
	if passed := time.Since(began); passed < 300*time.Millisecond {
		t.Errorf("the watch was frozen for %s", passed)
	}
	w.sees("later")
}

func TestFrozenWatchContinuesWhenTheRunEnds(t *testing.T) {
	s, m := start(t, trigger(script.Freeze, time.Hour, 0))
	w := m.watch(t)
	m.write(t)
	s.events <- "held"
	m.proxy.options.Scripts.Ongoing().Clear()
	w.sees("held")
}

func TestWatchEnds(t *testing.T) {
	_, m := start(t, trigger(script.Cut, time.Second, 0))
	w := m.watch(t)
	m.write(t)
	w.sees("")
	_, m = start(t, trigger(script.Gone, time.Second, 0))
	w = m.watch(t)
	m.write(t)
	w.sees(`"code":410`)
	w.sees("")
}

func TestListIsStale(t *testing.T) {
	s, m := start(t, trigger(script.Travel, 300*time.Millisecond, 0))
	first := m.list(t)
	w := m.watch(t)
	m.write(t) // The list is saved now, with the second request.
	w.sees(`"code":410`)
	<-s.ended
	if rejected := m.get(t, machines+"?watch=true&sendInitialEvents=true"); rejected.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a watch with initial events has status %s", rejected.Status)
	}
	// It may be read by who does not watch it: that is no cache.
	if unwatched := m.get(t, machines+"?labelSelector=a"); unwatched.StatusCode != http.StatusOK {
		t.Errorf("another list has status %s", unwatched.Status)
	}
	old := m.list(t)
	if old == first || !strings.Contains(old, `"asked":2`) || s.lists != 3 {
		t.Errorf("the list is %s after %d requests", old, s.lists)
	}
	began := time.Now()
	w = m.watch(t)
	s.events <- "after the list"
	w.sees("after the list")
	if passed := time.Since(began); passed < 100*time.Millisecond {
		t.Errorf("the event after the list was delayed for %s only", passed)
	}
	if now := m.list(t); !strings.Contains(now, `"asked":4`) {
		t.Errorf("the next list is %s", now)
	}
}

func TestPartitionsEnd(t *testing.T) {
	for _, do := range []script.Action{script.Unreachable, script.Blind, script.Hang} {
		f := trigger(do, 200*time.Millisecond, 0)
		_, m := start(t, f)
		m.write(t)
		if code, answer, err := m.patch(t.Context()); err == nil {
			t.Errorf("%s: the request succeeded: %d, %s", do, code, answer)
		}
		m.proxy.options.Scripts.Ongoing().Clear()
		m.write(t)
	}
}
