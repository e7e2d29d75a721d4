package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

func TestUnattended(t *testing.T) {
	class := &clusterv1.ClusterClass{}
	class.Spec.ControlPlane.MachineHealthCheck = &clusterv1.MachineHealthCheckClass{}
	class.Spec.Patches = []clusterv1.ClusterClassPatch{{}, {External: &clusterv1.ExternalPatchDefinition{}}}
	all := Unattended{Extensions: true}
	for _, tc := range []struct {
		reason    string
		got, want []string
	}{
		{"a class that uses all features", all.Class(class), []string{
			"spec.patches[1].external: this release does not call runtime extensions: Clusters of this class will not be reconciled",
		}},
		{"a class that uses none of them", all.Class(&clusterv1.ClusterClass{}), nil},
		{"a manager that implements all features", Unattended{}.Class(class), nil},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
		}
	}
}
