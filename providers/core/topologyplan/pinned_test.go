package topologyplan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestPinned plans an upgrade of a Cluster with workers that have a version of their own: they are not changed. A higher version is.
func TestPinned(t *testing.T) {
	second := strings.Replace(cluster, "replicas: 2}\n", "replicas: 2}\n      - {class: default-worker, name: md-1, replicas: 1, version: 1.30.0}\n", 1)
	for _, tt := range []struct {
		reason, version string
		want            [][]string
	}{
		{"the pinned workers stay", "v1.30.0", [][]string{{"modified KubeadmControlPlane"}, {"modified MachineDeployment"}}},
		{"the pinned workers get a higher version", "v1.31.0", [][]string{{"modified KubeadmControlPlane"}, {"modified MachineDeployment"}, {"modified MachineDeployment"}}},
		{"the version is removed", "", [][]string{{"modified KubeadmControlPlane"}, {"modified MachineDeployment"}, {"modified MachineDeployment"}}},
	} {
		plan, err := compute(t, Input{Objects: existing(t, second, func(c *clusterv1.Cluster) {
			c.Spec.Topology.Version = "v1.31.0"
			c.Spec.Topology.Workers.MachineDeployments[1].Version = tt.version
		})})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, summary(plan)); diff != "" || plan.Waiting != "" {
			t.Errorf("%s (-want +got), waiting %q:\n%s", tt.reason, plan.Waiting, diff)
		}
	}
}
