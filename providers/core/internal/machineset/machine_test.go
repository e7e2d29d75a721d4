package machineset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestSpecOfNewMachines(t *testing.T) {
	set := object.Builder{Namespace: "n"}.MachineSet("s", func(set *clusterv1.MachineSet) {
		set.Spec.ClusterName = "c"
		set.Spec.Template.Spec = clusterv1.MachineSpec{
			Version: "v1.34.0", FailureDomain: "a", MinReadySeconds: ptr.To[int32](5),
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: *object.Reference(bootstrap("KubeadmConfigTemplate"), "join")},
			InfrastructureRef: *object.Reference(infrastructure("InMemoryMachineTemplate"), "small"),
			Deletion:          clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: ptr.To[int32](9)},
		}
	})
	want := clusterv1.MachineSpec{
		ClusterName: "c", Version: "v1.34.0", FailureDomain: "a",
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: *object.Reference(bootstrap("KubeadmConfig"), "m")},
		InfrastructureRef: *object.Reference(infrastructure("InMemoryMachine"), "m"),
		Deletion:          clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: ptr.To[int32](9)},
	}
	if diff := cmp.Diff(want, newMachine(set, "m", 0).Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
