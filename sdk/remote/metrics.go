package remote

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// The metrics of Cluster API v1.14 about connections, under the same names. Connections are not probed: watches and the pings of HTTP/2
// show whether a cluster answers, so that both gauges have the same value. What counts as a health check is what a watch receives, once
// per interval of probes, each attempt to connect, and each loss of a connection.
var (
	connectionUp = prometheus.NewDesc("capi_cluster_cache_connection_up",
		"Whether the manager is connected to a workload cluster.", clusterLabels, nil)
	healthCheck = prometheus.NewDesc("capi_cluster_cache_healthcheck",
		"Whether a workload cluster answers on the manager's connection.", clusterLabels, nil)

	healthChecks = prometheus.NewDesc("capi_cluster_cache_healthchecks_total",
		"How often a workload cluster was found to answer on the manager's connection (success), or not to (error).",
		append(slices.Clone(clusterLabels), "status"), nil)

	clusterLabels = []string{"cluster_name", "cluster_namespace"}
)

// Describe implements prometheus.Collector.
func (c *Clusters) Describe(out chan<- *prometheus.Desc) {
	out <- connectionUp
	out <- healthCheck
	out <- healthChecks
}

// Collect implements prometheus.Collector: it reports the clusters that controllers have asked for and that have not been forgotten.
func (c *Clusters) Collect(out chan<- prometheus.Metric) {
	for key, up := range c.up() {
		for _, gauge := range []*prometheus.Desc{connectionUp, healthCheck} {
			out <- prometheus.MustNewConstMetric(gauge, prometheus.GaugeValue, up, key.Name, key.Namespace)
		}
	}
	for key, found := range c.checked() {
		for status, n := range map[string]uint64{"success": found.good, "error": found.bad} {
			out <- prometheus.MustNewConstMetric(healthChecks, prometheus.CounterValue, float64(n), key.Name, key.Namespace, status)
		}
	}
}

// checks is how often a cluster was found to answer, and not to.
type checks struct{ good, bad uint64 }

// checked returns the checks of each cluster.
func (c *Clusters) checked() map[types.NamespacedName]checks {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := maps.Clone(c.checks)
	for key, conn := range c.clusters {
		if conn.cluster != nil {
			n := found[key]
			n.good += conn.cluster.answers.Load()
			found[key] = n
		}
	}
	return found
}

// count counts the result of an attempt to connect, or the end of a connection. The caller must hold the lock.
func (c *Clusters) count(key types.NamespacedName, ended *Cluster, up bool) {
	n := c.checks[key]
	if ended != nil {
		n.good += ended.answers.Load()
	}
	if up {
		n.good++
	} else {
		n.bad++
	}
	c.checks[key] = n
}

// up returns 1 for each cluster that is connected, and 0 for each that is not.
func (c *Clusters) up() map[types.NamespacedName]float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[types.NamespacedName]float64{}
	for key := range c.away {
		found[key] = 0
	}
	for key, conn := range c.clusters {
		found[key] = 0
		if conn.cluster != nil {
			found[key] = 1
		}
	}
	return found
}
