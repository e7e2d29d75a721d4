package step

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestReconcileMetrics: dashboards of Cluster API v1.14 read these names.
func TestReconcileMetrics(t *testing.T) {
	var result Result
	var err error
	w := newWorld(t, func(context.Context, *clusterv1.Machine) (Result, error) { return result, err }, machine())
	registry := prometheus.NewRegistry()
	w.runner.metrics = newMetrics(registry)
	for _, c := range []struct {
		result Result
		err    error
	}{{Done(), nil}, {Done(), nil}, {Again(time.Minute), nil}, {Done(), errors.New("broken")}} {
		result, err = c.result, c.err
		_, _ = w.reconcile(t)
	}
	w.runner.written.remember(client.ObjectKeyFromObject(machine()), "9999", staleBackstop, now)
	if again, err := w.reconcile(t); err != nil || again.RequeueAfter == 0 {
		t.Fatalf("the cache does not have the last write, but the reconcile returns %v, %v", again, err)
	}
	const want = `
# HELP capi_reconcile_stale_cache_skips_total Reconciles that were put off because the cache does not have the controller's own last write of the object yet.
# TYPE capi_reconcile_stale_cache_skips_total counter
capi_reconcile_stale_cache_skips_total{cached_kind="Machine",controller="machine"} 1
# HELP capi_reconcile_total Reconciles by their result: success, requeue_after or error.
# TYPE capi_reconcile_total counter
capi_reconcile_total{controller="machine",result="error"} 1
capi_reconcile_total{controller="machine",result="requeue_after"} 2
capi_reconcile_total{controller="machine",result="success"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "capi_reconcile_total", "capi_reconcile_stale_cache_skips_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry, "capi_reconcile_time_seconds"); err != nil || n != 1 {
		t.Errorf("durations of %d controllers, want 1: %v", n, err)
	}
}

// TestStaleCacheOfSeveralKinds: a controller of several kinds has an interface as its type; metrics have the kind of the object.
func TestStaleCacheOfSeveralKinds(t *testing.T) {
	w := newWorld(t, nil, machine())
	registry := prometheus.NewRegistry()
	r := &Runner[Object]{
		Clients: w.runner.Clients, name: "several", metrics: newMetrics(registry),
		newObject: func() Object { return &clusterv1.Machine{} },
	}
	key := client.ObjectKeyFromObject(machine())
	r.written.remember(key, "9999", staleBackstop, now)
	if result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil || result.RequeueAfter == 0 {
		t.Fatalf("the cache does not have the last write, but the reconcile returns %v, %v", result, err)
	}
	const want = `
# HELP capi_reconcile_stale_cache_skips_total Reconciles that were put off because the cache does not have the controller's own last write of the object yet.
# TYPE capi_reconcile_stale_cache_skips_total counter
capi_reconcile_stale_cache_skips_total{cached_kind="Machine",controller="several"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "capi_reconcile_stale_cache_skips_total"); err != nil {
		t.Error(err)
	}
}
