package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

func TestUnattended(t *testing.T) {
	class := &clusterv1.ClusterClass{}
	class.Spec.ControlPlane.MachineHealthCheck = &clusterv1.MachineHealthCheckClass{}
	class.Spec.Workers.MachineDeployments = []clusterv1.MachineDeploymentClass{{}, {MachineHealthCheck: &clusterv1.MachineHealthCheckClass{}}}
	class.Spec.Patches = []clusterv1.ClusterClassPatch{{}, {External: &clusterv1.ExternalPatchDefinition{}}}
	yes, no := true, false
	topology := &clusterv1.Topology{
		ControlPlane: clusterv1.ControlPlaneTopology{MachineHealthCheck: &clusterv1.MachineHealthCheckTopology{Enable: &no}},
		Workers: &clusterv1.WorkersTopology{
			MachineDeployments: []clusterv1.MachineDeploymentTopology{{}, {MachineHealthCheck: &clusterv1.MachineHealthCheckTopology{Enable: &yes}}},
		},
	}
	all := Unattended{HealthChecks: true, Extensions: true}
	for _, tc := range []struct {
		reason    string
		got, want []string
	}{
		{"a class that uses all features", all.Class(class), []string{
			"spec.controlPlane.machineHealthCheck: " + checksUnattended,
			"spec.workers.machineDeployments[1].machineHealthCheck: " + checksUnattended,
			"spec.patches[1].external: this release does not call runtime extensions: Clusters of this class will not be reconciled",
		}},
		{"a class that uses none of them", all.Class(&clusterv1.ClusterClass{}), nil},
		{"a manager that implements all features", Unattended{}.Class(class), nil},
		{"a topology; disabled health checks do not count", all.Topology(topology), []string{
			"spec.topology.workers.machineDeployments[1].machineHealthCheck: " + checksUnattended,
		}},
		{"a topology without workers", all.Topology(&clusterv1.Topology{}), nil},
		{"a topology in a manager that implements all features", Unattended{}.Topology(topology), nil},
		{"objects that are created", all.Objects(true), []string{checksUnattended}},
		{"no such objects", all.Objects(false), nil},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
		}
	}
}
