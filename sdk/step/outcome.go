package step

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/cluster-api/sdk/step/internal/current"
)

// outcome is the result of a step in metrics.
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

// metrics count and time the reconciles and steps of all controllers of a process. Those of reconciles have the names of Cluster API v1.14.
type metrics struct {
	duration    *prometheus.HistogramVec
	outcomes    *prometheus.CounterVec
	transitions *prometheus.CounterVec
	reconciles  *prometheus.CounterVec
	took        *prometheus.HistogramVec
	stale       *prometheus.CounterVec
}

// newMetrics returns the metrics of a registry, and registers them at the first call.
func newMetrics(registry prometheus.Registerer) *metrics {
	return &metrics{
		duration: RegisterMetric(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "capi_step_duration_seconds", Help: "Duration of steps of reconciles.",
			Buckets: []float64{.001, .01, .1, 1, 10},
		}, []string{"controller", "step"})),
		outcomes: RegisterMetric(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capi_step_outcomes_total",
			Help: "Outcomes of steps: done, waiting, stopped, stale (retried with an up-to-date object) or failed.",
		}, []string{"controller", "step", "outcome"})),
		transitions: RegisterMetric(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capi_step_transitions_total", Help: "Changes of the outcome of a step for an object, by the new outcome.",
		}, []string{"controller", "step", "outcome"})),
		reconciles: RegisterMetric(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capi_reconcile_total", Help: "Reconciles by their result: success, requeue_after or error.",
		}, []string{"controller", "result"})),
		took: RegisterMetric(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "capi_reconcile_time_seconds", Help: "Duration of reconciles.", Buckets: []float64{.001, .01, .1, 1, 10},
		}, []string{"controller"})),
		stale: RegisterMetric(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capi_reconcile_stale_cache_skips_total",
			Help: "Reconciles that were put off because the cache does not have the controller's own last write of the object yet.",
		}, []string{"controller", "cached_kind"})),
	}
}

// reconciled counts a reconcile.
func (m *metrics) reconciled(controller string, took time.Duration, result ctrl.Result, err error) {
	label := "success"
	switch {
	case err != nil:
		label = "error"
	case result.RequeueAfter > 0:
		label = "requeue_after"
	}
	m.reconciles.WithLabelValues(controller, label).Inc()
	m.took.WithLabelValues(controller).Observe(took.Seconds())
}

// stepLog has the steps of one reconcile and their outcomes.
type stepLog struct {
	controller string
	metrics    *metrics
	steps      []current.Step
}

// add adds a step. It does nothing if l is nil.
func (l *stepLog) add(s current.Step) {
	if l == nil {
		return
	}
	l.metrics.duration.WithLabelValues(l.controller, s.Name).Observe(s.Took.Seconds())
	l.metrics.outcomes.WithLabelValues(l.controller, s.Name, s.Outcome).Inc()
	l.steps = append(l.steps, s)
}

// transitions remembers, per object, which steps wait or failed, so that each change is logged and counted once. All other steps
// are done: after a restart, waiting steps are logged again.
type transitions struct {
	mu    sync.Mutex
	known map[types.NamespacedName]map[string]outcome
}

// observe logs and counts the steps whose outcome changed since the previous reconcile.
func (t *transitions) observe(log logr.Logger, key types.NamespacedName, now *stepLog) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.known[key]
	unfinished := map[string]outcome{}
	for _, s := range now.steps {
		became, was := outcome(s.Outcome), before[s.Name]
		if became == outcomeStale {
			became = was // It is retried immediately.
		}
		if was == "" {
			was = outcomeDone
		}
		if became == "" {
			became = outcomeDone
		}
		if became == outcomeWaiting || became == outcomeFailed {
			unfinished[s.Name] = became
		}
		if was == became {
			continue
		}
		now.metrics.transitions.WithLabelValues(now.controller, s.Name, string(became)).Inc()
		switch became {
		case outcomeWaiting:
			log.Info("Step is waiting", "step", s.Name, "for", s.WaitsFor)
		case outcomeDone:
			log.Info("Step is done", "step", s.Name)
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
