package cluster

import (
	"testing"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestPhase(t *testing.T) {
	up := func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }
	failed := func(c *clusterv1.Cluster) {
		c.SetV1Beta1Status(clusterv1.ClusterV1Beta1DeprecatedStatus{FailureMessage: ptr.To("no luck")})
	}
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		want    clusterv1.ClusterPhase
	}{
		"Empty":      {"there is no reference", build.Cluster(), clusterv1.ClusterPhasePending},
		"Hosted":     {"the control plane is being created", build.Cluster(withPlane, up), clusterv1.ClusterPhaseProvisioning},
		"NoRef":      {"an endpoint suffices without infrastructure", build.Cluster(up, withEndpoint), clusterv1.ClusterPhaseProvisioned},
		"Referring":  {"the infrastructure is not ready", build.Cluster(withInfra), clusterv1.ClusterPhaseProvisioning},
		"NoEndpoint": {"the infrastructure is ready, but there is no endpoint", build.Cluster(withInfra, up), clusterv1.ClusterPhaseProvisioning},
		"Up":         {"the infrastructure is ready and there is an endpoint", build.Cluster(withInfra, up, withEndpoint), clusterv1.ClusterPhaseProvisioned},
		"Failed":     {"a failure takes precedence", build.Cluster(withInfra, up, withEndpoint, failed), clusterv1.ClusterPhaseFailed},
		"Deleting":   {"deletion takes precedence over a failure", build.Cluster(withInfra, up, withEndpoint, failed, object.Deleting), clusterv1.ClusterPhaseDeleting},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := phaseOf(tc.cluster); got != tc.want {
				t.Errorf("%s: phase = %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
