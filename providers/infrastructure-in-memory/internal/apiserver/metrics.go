package apiserver

import (
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
)

// Metrics is an Observer for Prometheus. Unbounded values (paths, hosts, user agents) are not labels, and durations are
// not per cluster, to limit cardinality with a thousand clusters.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	etcd     *prometheus.HistogramVec
}

// NewMetrics returns a Metrics and registers its metrics. It reuses those of an earlier Metrics, because a process may
// restart a provider. It fails if their names conflict with other metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	what := []string{"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"}
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capim_apiserver_request_total",
			Help: "Requests to the API servers of in-memory clusters, by verb, resource, HTTP code and cluster.",
		}, append(what, "code", "cluster_name")),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "capim_apiserver_request_duration_seconds",
			Help: "Duration of requests to the API servers of in-memory clusters, by verb and resource.",
		}, what),
		etcd: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "capim_etcd_request_duration_seconds",
			Help: "Duration of calls to the etcd members of in-memory clusters, by gRPC method.",
		}, []string{"grpc_method"}),
	}
	return m, errors.Join(register(registerer, &m.requests), register(registerer, &m.duration), register(registerer, &m.etcd))
}

// register registers a collector, or replaces it with the existing one.
func register[C prometheus.Collector](registerer prometheus.Registerer, c *C) error {
	err := registerer.Register(*c)
	var taken prometheus.AlreadyRegisteredError
	if !errors.As(err, &taken) {
		return err
	}
	earlier, same := taken.ExistingCollector.(C)
	if !same {
		return err
	}
	*c = earlier
	return nil
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

// ForgetCluster implements Observer: it drops the metrics of a deleted cluster.
func (m *Metrics) ForgetCluster(e *Endpoint) {
	m.requests.DeletePartialMatch(prometheus.Labels{"cluster_name": e.Group().Key().String()})
}
