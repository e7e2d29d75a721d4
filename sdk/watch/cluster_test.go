package watch_test

import (
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

func TestCluster(t *testing.T) {
	p := watch.Cluster(watch.Paused, watch.Endpoint, watch.ControlPlaneInitialized)
	for name, c := range map[string]struct {
		reason string
		change func(*clusterv1.Cluster)
		want   bool
	}{
		"Nothing":  {"a resync is no news", func(*clusterv1.Cluster) {}, false},
		"Paused":   {"one of the aspects", func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) }, true},
		"Endpoint": {"a struct is compared as a whole", func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint.Port = 1 }, true},
		"Initialized": {"a condition", func(c *clusterv1.Cluster) {
			condition.Set(c, condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition))
		}, true},
		"Other": {"this aspect was not selected", func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			after := &clusterv1.Cluster{}
			c.change(after)
			if got := p.Update(event.UpdateEvent{ObjectOld: &clusterv1.Cluster{}, ObjectNew: after}); got != c.want {
				t.Errorf("%s: passed = %t, want %t", c.reason, got, c.want)
			}
		})
	}
	if !p.Create(event.CreateEvent{Object: &clusterv1.Cluster{}}) || p.Delete(event.DeleteEvent{Object: &clusterv1.Cluster{}}) {
		t.Error("the creation of Clusters must be selected, and not their deletion")
	}
}
