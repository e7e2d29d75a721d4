package apiserver

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
)

// counted returns the values of the request counter by "verb resource code".
func counted(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "capim_apiserver_request_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			values[strings.Join([]string{labels["verb"], labels["resource"], labels["code"]}, " ")] = m.GetCounter().GetValue()
		}
	}
	return values
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatalf("registering again in the same process: %v", err)
	}
	simulated, server := cloud.New(cloud.Options{}), New(Options{Observer: metrics})
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	c := addTestCluster(t, simulated, server, types.NamespacedName{Namespace: "n", Name: "c"}, newTestCA(t, "ca"), newTestCA(t, "etcd"))
	client := c.client(t).CoreV1().Nodes()
	if _, err := client.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(t.Context(), "none", metav1.GetOptions{}); err == nil {
		t.Fatal("want NotFound")
	}
	watching, err := client.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	for what, want := range map[string]float64{"list nodes 200": 1, "get nodes 404": 1, "watch nodes 200": 1} {
		if got := counted(t, registry)[what]; got != want {
			t.Errorf("%s: %v, want %v in %v", what, got, want, counted(t, registry))
		}
	}
	if err := c.endpoint.Close(); err != nil {
		t.Fatal(err)
	}
	if left := counted(t, registry); len(left) != 0 {
		t.Errorf("metrics of a deleted cluster: %v", left)
	}
}
