package machinedeployment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Names and labels of stored MachineSets contain the hash: a new field that is unset must not change it, and no field does that is
// updated in place.
func TestHashesOfStoredMachineSets(t *testing.T) {
	md := build.MachineDeployment("md", func(md *clusterv1.MachineDeployment) {
		md.UID = "u"
		md.Spec.Template = template(func(m *clusterv1.MachineTemplateSpec) {
			m.Spec.Version, m.Spec.FailureDomain = "v1.30.1", "a"
			m.Spec.InfrastructureRef.Name = "t"
		})
	})
	want := []identity{{name: "md-77bbd", hash: "3081152299-77bbd"}, {name: "md-k78mj", hash: "1348237967-k78mj"}}
	check := func() {
		t.Helper()
		if diff := cmp.Diff(want, identitiesOf(md, time.Time{}), cmp.AllowUnexported(identity{})); diff != "" {
			t.Errorf("identities (-stored +got):\n%s", diff)
		}
	}
	check()
	md.Spec.Template.Spec.Taints = []clusterv1.MachineTaint{{Key: "a"}}
	md.Spec.Template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "A"}}
	md.Spec.Template.Spec.MinReadySeconds = ptr.To[int32](9)
	md.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](9)
	check()
	md.Spec.Template = template(func(m *clusterv1.MachineTemplateSpec) {
		m.Spec.Version, m.Spec.InfrastructureRef.Name, m.Spec.Bootstrap = "", "t", clusterv1.Bootstrap{DataSecretName: ptr.To("data")}
	})
	want = []identity{{name: "md-5kmpw", hash: "2542035862-5kmpw"}, {name: "md-2b27z", hash: "877542514-2b27z"}}
	check()
	md.Spec.Template = template(func(m *clusterv1.MachineTemplateSpec) {
		m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("")}
	})
	if want := (identity{name: "md-dnff4", hash: "2767364511-dnff4"}); identityOf(md, time.Time{}) != want {
		t.Errorf("identity = %+v, want %+v as stored by a client of v1beta1 without bootstrap data", identityOf(md, time.Time{}), want)
	}
}
