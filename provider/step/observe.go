package step

import (
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// outcome is what became of a step, as metrics call it.
type outcome string

const (
	outcomeDone    outcome = "done"
	outcomeWaiting outcome = "waiting"
	outcomeStopped outcome = "stopped"
	outcomeStale   outcome = "stale"
	outcomeFailed  outcome = "failed"
)

func outcomeOf(r Result, err error) outcome {
	switch {
	case err != nil && IsStale(err):
		return outcomeStale
	case err != nil:
		return outcomeFailed
	case r.consequence == awaiting:
		return outcomeWaiting
	case r.consequence == stopped:
		return outcomeStopped
	}
	return outcomeDone
}

// metrics count and time the steps of all controllers of a process.
type metrics struct {
	duration    *prometheus.HistogramVec
	outcomes    *prometheus.CounterVec
	transitions *prometheus.CounterVec
}

// newMetrics returns the metrics of a registry, and registers them if they are not there.
func newMetrics(registry prometheus.Registerer) *metrics {
	return &metrics{
		duration: registered(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "capi_step_duration_seconds", Help: "How long steps of reconciles take.",
			Buckets: []float64{.001, .01, .1, 1, 10},
		}, []string{"controller", "step"})),
		outcomes: registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capi_step_outcomes_total", Help: "Outcomes of steps: done, waiting, stopped, stale (retried on a newer copy) or failed.",
		}, []string{"controller", "step", "outcome"})),
		transitions: registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capi_step_transitions_total", Help: "Steps of objects whose outcome changed, by the new outcome.",
		}, []string{"controller", "step", "outcome"})),
	}
}

func registered[C prometheus.Collector](registry prometheus.Registerer, c C) C {
	there := prometheus.AlreadyRegisteredError{}
	if err := registry.Register(c); errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(C); ok {
			return same
		}
	}
	return c
}

// taken are the steps of one reconcile, and what they wait for.
type taken struct {
	controller string
	metrics    *metrics
	steps      []string
	outcomes   []outcome
	// waits is what the steps wait for, by step.
	waits map[string]string
}

// taken notes a step. A nil taken notes nothing.
func (t *taken) taken(name string, took time.Duration, r Result, err error) {
	if t == nil {
		return
	}
	became := outcomeOf(r, err)
	t.metrics.duration.WithLabelValues(t.controller, name).Observe(took.Seconds())
	t.metrics.outcomes.WithLabelValues(t.controller, name, string(became)).Inc()
	t.steps, t.outcomes = append(t.steps, name), append(t.outcomes, became)
	if became == outcomeWaiting {
		if t.waits == nil {
			t.waits = map[string]string{}
		}
		t.waits[name] = r.what
	}
}

// transitions remembers, per object, which steps wait or failed and for what, so that changes of that are told once. A step
// that is not remembered is done: after a restart, what waits is told again.
type transitions struct {
	mu    sync.Mutex
	known map[types.NamespacedName]map[string]outcome
}

// tell logs and counts the steps of a reconcile whose outcome is another one than in the reconcile before.
func (t *transitions) tell(log logr.Logger, key types.NamespacedName, now *taken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.known[key]
	unfinished := map[string]outcome{}
	for i, name := range now.steps {
		became, was := now.outcomes[i], before[name]
		if became == outcomeStale {
			became = was // it is tried again at once
		}
		if was == "" {
			was = outcomeDone
		}
		if became == "" {
			became = outcomeDone
		}
		if became == outcomeWaiting || became == outcomeFailed {
			unfinished[name] = became
		}
		if was == became {
			continue
		}
		now.metrics.transitions.WithLabelValues(now.controller, name, string(became)).Inc()
		switch became {
		case outcomeWaiting:
			log.Info("Step is waiting", "step", name, "for", now.waits[name])
		case outcomeDone:
			log.Info("Step is done", "step", name)
		}
	}
	if t.known == nil {
		t.known = map[types.NamespacedName]map[string]outcome{}
	}
	if len(unfinished) == 0 {
		delete(t.known, key)
		return
	}
	t.known[key] = unfinished
}

func (t *transitions) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, key)
}
