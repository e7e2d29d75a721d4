package remote

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestMetrics: alerts of Cluster API v1.14 read these names.
func TestMetrics(t *testing.T) {
	server := newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	w.connected(blue)
	if _, err := w.clusters.Get(t.Context(), green); !IsNotConnected(err) {
		t.Fatalf("green has no kubeconfig, but Get returns %v", err)
	}
	const both = `
# HELP capi_cluster_cache_connection_up Whether the manager is connected to a workload cluster.
# TYPE capi_cluster_cache_connection_up gauge
capi_cluster_cache_connection_up{cluster_name="blue",cluster_namespace="default"} 1
capi_cluster_cache_connection_up{cluster_name="green",cluster_namespace="default"} 0
# HELP capi_cluster_cache_healthcheck Whether a workload cluster answers on the manager's connection.
# TYPE capi_cluster_cache_healthcheck gauge
capi_cluster_cache_healthcheck{cluster_name="blue",cluster_namespace="default"} 1
capi_cluster_cache_healthcheck{cluster_name="green",cluster_namespace="default"} 0
# HELP capi_cluster_cache_healthchecks_total How often a workload cluster was found to answer on the manager's connection (success), or not to (error).
# TYPE capi_cluster_cache_healthchecks_total counter
capi_cluster_cache_healthchecks_total{cluster_name="blue",cluster_namespace="default",status="error"} 0
capi_cluster_cache_healthchecks_total{cluster_name="blue",cluster_namespace="default",status="success"} 2
`
	if err := testutil.CollectAndCompare(w.clusters, strings.NewReader(both)); err != nil {
		t.Error(err)
	}
	server.CloseClientConnections()
	server.Close()
	w.await("connection blue")
	const lost = `
# HELP capi_cluster_cache_healthchecks_total How often a workload cluster was found to answer on the manager's connection (success), or not to (error).
# TYPE capi_cluster_cache_healthchecks_total counter
capi_cluster_cache_healthchecks_total{cluster_name="blue",cluster_namespace="default",status="error"} 1
capi_cluster_cache_healthchecks_total{cluster_name="blue",cluster_namespace="default",status="success"} 2
`
	if err := testutil.CollectAndCompare(w.clusters, strings.NewReader(lost), "capi_cluster_cache_healthchecks_total"); err != nil {
		t.Error(err)
	}
	w.clusters.Forget(blue)
	w.clusters.Forget(green)
	if err := testutil.CollectAndCompare(w.clusters, strings.NewReader("")); err != nil {
		t.Errorf("forgotten clusters have no metrics: %v", err)
	}
}
