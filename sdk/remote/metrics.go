package remote

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// The gauges of Cluster API v1.14 about connections, under the same names. Connections are not probed: requests, watches and the pings of
// HTTP/2 show whether a cluster answers, so that both have the same value.
var (
	connectionUp = prometheus.NewDesc("capi_cluster_cache_connection_up",
		"Whether the manager is connected to a workload cluster.", clusterLabels, nil)
	healthCheck = prometheus.NewDesc("capi_cluster_cache_healthcheck",
		"Whether a workload cluster answers on the manager's connection.", clusterLabels, nil)

	clusterLabels = []string{"cluster_name", "cluster_namespace"}
)

// Describe implements prometheus.Collector.
func (c *Clusters) Describe(out chan<- *prometheus.Desc) {
	out <- connectionUp
	out <- healthCheck
}

// Collect implements prometheus.Collector: it reports the clusters that controllers have asked for and that have not been forgotten.
func (c *Clusters) Collect(out chan<- prometheus.Metric) {
	for key, up := range c.up() {
		for _, gauge := range []*prometheus.Desc{connectionUp, healthCheck} {
			out <- prometheus.MustNewConstMetric(gauge, prometheus.GaugeValue, up, key.Name, key.Namespace)
		}
	}
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
