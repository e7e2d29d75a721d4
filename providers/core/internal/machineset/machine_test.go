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

// TestMinReadySecondsInPlace: Machines of v1.14 have the field, and are not written as long as the template does not change; ours do not.
func TestMinReadySecondsInPlace(t *testing.T) {
	for _, tt := range []struct {
		reason              string
		template, is, wants *int32
	}{
		{"ours have none", ptr.To[int32](5), nil, nil},
		{"that of v1.14 stays", ptr.To[int32](5), ptr.To[int32](5), ptr.To[int32](5)},
		{"it follows the template", ptr.To[int32](6), ptr.To[int32](5), ptr.To[int32](6)},
		{"the template no longer has it", nil, ptr.To[int32](5), nil},
	} {
		set := object.Builder{Namespace: "n"}.MachineSet("s", func(set *clusterv1.MachineSet) {
			set.Spec.Template.Spec.MinReadySeconds = tt.template
		})
		m := object.Builder{Namespace: "n"}.Machine("m", func(m *clusterv1.Machine) { m.Spec.MinReadySeconds = tt.is })
		if diff := cmp.Diff(tt.wants, inPlace(set, m).Spec.MinReadySeconds); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}
