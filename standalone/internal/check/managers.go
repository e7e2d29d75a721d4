package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/cluster-api/standalone/internal/host"
)

// observer notes what our managers say, and what they may not do.
type observer struct {
	mu sync.Mutex
	// forbidden are the requests that were not permitted, by program.
	forbidden map[string]bool
	// advice is what managers say about their flags and feature gates.
	advice map[string]bool
	// errors are the errors that were logged, and how often.
	errors map[string]int
	// failing are the objects whose last reconcile failed, with the errors.
	failing map[reconciled]string
	// stopped is whether the managers are being stopped: what they log then is no finding.
	stopped bool
}

// stop is called before the managers are stopped.
func (o *observer) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = true
}

func newObserver() *observer {
	return &observer{forbidden: map[string]bool{}, advice: map[string]bool{}, errors: map[string]int{}, failing: map[reconciled]string{}}
}

// reconciled is an object of a controller.
type reconciled struct{ controller, namespace, name string }

// failures returns the objects whose last reconcile failed, sorted.
func (o *observer) failures() []Failure {
	o.mu.Lock()
	defer o.mu.Unlock()
	failures := make([]Failure, 0, len(o.failing))
	for at, text := range o.failing {
		failures = append(failures, Failure{Controller: at.controller, Namespace: at.namespace, Name: at.name, Error: text})
	}
	slices.SortFunc(failures, func(a, b Failure) int {
		return cmp.Or(strings.Compare(a.Controller, b.Controller), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return failures
}

// managers returns the programs as they run in the copy: observed, with the certificate of the copy, and without connections to anything
// but the copy and, only for reading, workload clusters.
func managers(programs map[string]host.Program, o *observer, w *workloads, certificates string) map[string]host.Program {
	wrapped := make(map[string]host.Program, len(programs))
	for name, program := range programs {
		wrapped[name] = func(ctx context.Context, args []string, p host.Process) error {
			p.Config = rest.CopyConfig(p.Config)
			p.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return permissions{name, o, next} })
			p.CertDir, p.WrapWorkload = certificates, w.wrap
			p.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
				return nil, fmt.Errorf("%w: %s", errNotCalled, address)
			}
			return program(ctx, args, p)
		}
	}
	return wrapped
}

// errNotCalled is why runtime extensions are not called.
var errNotCalled = errors.New("runtime extensions are not called by the check")

// permissions notes which requests are forbidden.
type permissions struct {
	program  string
	observer *observer
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p permissions) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusForbidden {
		p.observer.mu.Lock()
		defer p.observer.mu.Unlock()
		p.observer.forbidden[p.program+": "+verbOf(r)] = true
	}
	return response, err
}

// WrappedRoundTripper returns the next transport, for libraries that look for connections to close.
func (p permissions) WrappedRoundTripper() http.RoundTripper { return p.next }

// verbOf returns the verb and the resource of a request, as roles name them.
func verbOf(r *http.Request) string {
	verb := map[string]string{
		http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodGet: "get",
	}[r.Method]
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = "."+parts[1], parts[3:]
	default:
		return verb + " " + r.URL.Path
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") == "true":
		verb = "watch"
	case r.Method == http.MethodGet && len(parts) == 1:
		verb = "list"
	}
	resource := parts[0] + group
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return verb + " " + resource
}

// logger returns a logger that also notes what is logged.
func (o *observer) logger(to logr.Logger) logr.Logger {
	return logr.New(&sink{LogSink: to.GetSink(), observer: o})
}

// sink passes on what is logged.
type sink struct {
	logr.LogSink
	observer *observer
	name     string
	object   reconciled // of the values
}

// outcomes is the level at which controller-runtime logs that a reconcile succeeded.
const outcomes = 5

// Enabled implements logr.LogSink.
func (s *sink) Enabled(level int) bool {
	return level == 0 || level == outcomes || s.LogSink.Enabled(level)
}

// Info implements logr.LogSink.
func (s *sink) Info(level int, message string, keysAndValues ...any) {
	if message == "Deprecated flag" || message == "Feature gate without effect" {
		values := map[string]string{}
		for i := 0; i+1 < len(keysAndValues); i += 2 {
			values[fmt.Sprint(keysAndValues[i])] = fmt.Sprint(keysAndValues[i+1])
		}
		what := "flag --" + values["flag"]
		if gate := values["gate"]; gate != "" {
			what = "feature gate " + gate
		}
		s.observer.mu.Lock()
		s.observer.advice[fmt.Sprintf("%s of %s: %s", what, s.name, values["advice"])] = true
		s.observer.mu.Unlock()
	}
	// The messages of controller-runtime, which has no other way to tell.
	if message == "Reconcile successful" || strings.HasPrefix(message, "Reconcile done, requeueing") {
		s.observer.mu.Lock()
		delete(s.observer.failing, s.object)
		s.observer.mu.Unlock()
	}
	if s.LogSink.Enabled(level) {
		s.LogSink.Info(level, message, keysAndValues...)
	}
}

// Error implements logr.LogSink.
func (s *sink) Error(err error, message string, keysAndValues ...any) {
	text := message
	if err != nil {
		text += ": " + err.Error()
	}
	s.observer.mu.Lock()
	if !s.observer.stopped {
		s.observer.errors[s.name+": "+text]++
		if message == "Reconciler error" && err != nil { // controller-runtime's message
			s.observer.failing[s.object] = err.Error()
		}
	}
	s.observer.mu.Unlock()
	s.LogSink.Error(err, message, keysAndValues...)
}

// WithValues implements logr.LogSink.
func (s *sink) WithValues(keysAndValues ...any) logr.LogSink {
	object := s.object
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		value, isText := keysAndValues[i+1].(string)
		switch {
		case !isText:
		case keysAndValues[i] == "controller":
			object.controller = value
		case keysAndValues[i] == "namespace":
			object.namespace = value
		case keysAndValues[i] == "name":
			object.name = value
		}
	}
	return &sink{s.LogSink.WithValues(keysAndValues...), s.observer, s.name, object}
}

// WithName implements logr.LogSink.
func (s *sink) WithName(name string) logr.LogSink {
	next := name
	if s.name != "" {
		next = s.name + "/" + name
	}
	return &sink{s.LogSink.WithName(name), s.observer, next, s.object}
}

// sorted returns what was noted, sorted.
func (o *observer) sorted(of map[string]bool) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(of))
}
