package apiserver

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/etcd"
)

// Metrics is the Observer that counts for Prometheus. What could grow without bound (paths, hosts, user
// agents) is no label, and durations are not kept per cluster: a thousand clusters have to be affordable.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	etcd     *prometheus.HistogramVec
}

// NewMetrics returns a Metrics whose metrics are registered. It fails when some of their names are taken.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	what := []string{"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"}
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capim_apiserver_request_total",
			Help: "Requests answered by the API servers of in-memory clusters, by what was asked for, HTTP code and cluster.",
		}, append(what, "code", "cluster_name")),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "capim_apiserver_request_duration_seconds",
			Help: "Time the API servers of in-memory clusters took to answer, by what was asked for.",
		}, what),
		etcd: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "capim_etcd_request_duration_seconds",
			Help: "Time the etcd members of in-memory clusters took to answer, by gRPC method.",
		}, []string{"grpc_method"}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.etcd} {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// ObserveRequest implements Observer.
func (m *Metrics) ObserveRequest(o Observation) {
	dryRun := ""
	if o.DryRun {
		dryRun = "All"
	}
	what := []string{o.Verb, dryRun, o.Group, o.Version, o.Resource, o.Subresource, o.Scope, "apiserver"}
	m.duration.WithLabelValues(what...).Observe(o.Duration.Seconds())
	m.requests.WithLabelValues(append(what, strconv.Itoa(o.Code), o.Endpoint.Group().Key().String())...).Inc()
}

// ObserveEtcd implements Observer.
func (m *Metrics) ObserveEtcd(c etcd.Call) {
	m.etcd.WithLabelValues(c.Method).Observe(c.Duration.Seconds())
}

// ForgetCluster drops what was counted for a cluster that is no more.
func (m *Metrics) ForgetCluster(e *Endpoint) {
	m.requests.DeletePartialMatch(prometheus.Labels{"cluster_name": e.Group().Key().String()})
}
