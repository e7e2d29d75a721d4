package cluster

import (
	"testing"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

func TestPhase(t *testing.T) {
	up := func(c *clusterv1.Cluster) { c.Status.InfrastructureReady = true }
	failed := func(c *clusterv1.Cluster) { c.Status.FailureMessage = ptr.To("no luck") }
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		want    clusterv1.ClusterPhase
	}{
		"Empty":      {"nothing is asked for", cluster(), clusterv1.ClusterPhasePending},
		"Referring":  {"infrastructure is on its way", cluster(withInfra), clusterv1.ClusterPhaseProvisioning},
		"NoEndpoint": {"it is of no use without an endpoint", cluster(withInfra, up), clusterv1.ClusterPhaseProvisioning},
		"Up":         {"infrastructure is there", cluster(withInfra, up, withEndpoint), clusterv1.ClusterPhaseProvisioned},
		"Failed":     {"failure beats that", cluster(withInfra, up, withEndpoint, failed), clusterv1.ClusterPhaseFailed},
		"Deleting":   {"deletion beats everything", cluster(withInfra, up, withEndpoint, failed, deleting), clusterv1.ClusterPhaseDeleting},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := phaseOf(tc.cluster); got != tc.want {
				t.Errorf("%s: phase = %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
