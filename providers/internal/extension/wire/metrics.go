package wire

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// metrics count and time calls.
type metrics struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// newMetrics returns the metrics of a registry, and registers them at the first call.
func newMetrics(registry prometheus.Registerer) *metrics {
	return &metrics{
		total: step.RegisterMetric(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capi_runtime_sdk_requests_total",
			Help: "Number of calls of runtime extensions, by HTTP status code and the status of the response.",
		}, []string{"code", "host", "group", "version", "hook", "status"})),
		duration: step.RegisterMetric(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "capi_runtime_sdk_request_duration_seconds",
			Help:    "Duration of calls of runtime extensions.",
			Buckets: []float64{.005, .025, .05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
		}, []string{"host", "group", "version", "hook"})),
	}
}

func (m *metrics) called(host string, hook runtimecatalog.GroupVersionHook, code, status string, took time.Duration) {
	m.total.WithLabelValues(cmp.Or(code, "<error>"), host, hook.Group, hook.Version, hook.Hook, status).Inc()
	m.duration.WithLabelValues(host, hook.Group, hook.Version, hook.Hook).Observe(took.Seconds())
}

// statusOf returns the label status of a call.
func statusOf(response runtimehooksv1.ResponseObject, err error) string {
	if status := response.GetStatus(); err == nil && status != "" {
		return string(status)
	}
	return "Unknown"
}
