package snapshot

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestPendingVersion(t *testing.T) {
	const old, next = "v1.30.0", "v1.32.0"
	reported := func(c *clusterv1.Cluster, generation int64) {
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterTopologyReconciledCondition, Status: metav1.ConditionFalse, ObservedGeneration: generation}}
	}
	for _, tt := range []struct {
		reason string
		change func(*clusterv1.Cluster)
		want   string
	}{
		{"a user has changed the version", func(c *clusterv1.Cluster) { reported(c, 1) }, next},
		{"definitions of v1.7 do not have the condition: a scaled topology and its control plane must not wait for each other", func(*clusterv1.Cluster) {}, ""},
		{"the topology controller has seen it, and waits for something", func(c *clusterv1.Cluster) { reported(c, 2) }, ""},
		{"the control plane has the version of a step", func(c *clusterv1.Cluster) {
			c.Annotations = map[string]string{clusterv1.ClusterTopologyUpgradeStepAnnotation: old}
		}, ""},
		{"another step is about to begin", func(c *clusterv1.Cluster) {
			reported(c, 1)
			c.Annotations = map[string]string{clusterv1.ClusterTopologyUpgradeStepAnnotation: "v1.31.0"}
		}, next},
		{"the control plane has the version", func(c *clusterv1.Cluster) { c.Spec.Topology.Version = old }, ""},
		{"no topology", func(c *clusterv1.Cluster) { c.Spec.Topology = clusterv1.Topology{} }, ""},
	} {
		cluster, kcp := &clusterv1.Cluster{}, &controlplanev1.KubeadmControlPlane{}
		cluster.Generation, cluster.Spec.Topology = 2, clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "c"}, Version: next}
		kcp.Spec.Version = old
		tt.change(cluster)
		if got := (&ControlPlane{Cluster: cluster, KCP: kcp}).PendingVersion(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
		}
	}
}
