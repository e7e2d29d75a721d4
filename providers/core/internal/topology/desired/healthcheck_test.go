package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestControlPlaneHealthCheck: the topology overrides the health check of the class as a whole, or turns it off.
func TestControlPlaneHealthCheck(t *testing.T) {
	yes, no := true, false
	check := func(status corev1.ConditionStatus) clusterv1.MachineHealthCheckChecks {
		return clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{{Type: "Ready", Status: status}}}
	}
	ofClass, own := clusterv1.ControlPlaneClassHealthCheck{Checks: check("False")}, check("Unknown")
	limited := clusterv1.ControlPlaneClassHealthCheck{Checks: check("False")}
	limited.Remediation.TriggerIf.UnhealthyInRange = "[0-1]"
	for _, tc := range []struct {
		reason   string
		class    clusterv1.ControlPlaneClassHealthCheck
		topology clusterv1.ControlPlaneTopologyHealthCheck
		// want is the status of the check; empty if there is no check. limit is its range.
		want  corev1.ConditionStatus
		limit string
	}{
		{"neither defines one", clusterv1.ControlPlaneClassHealthCheck{}, clusterv1.ControlPlaneTopologyHealthCheck{}, "", ""},
		{"the class defines one", limited, clusterv1.ControlPlaneTopologyHealthCheck{}, "False", "[0-1]"},
		{"the topology turns it off", ofClass, clusterv1.ControlPlaneTopologyHealthCheck{Enabled: &no}, "", ""},
		{"the topology turns it on", ofClass, clusterv1.ControlPlaneTopologyHealthCheck{Enabled: &yes}, "False", ""},
		{"the topology's replaces that of the class with its limit", limited, clusterv1.ControlPlaneTopologyHealthCheck{Checks: own}, "Unknown", ""},
		{"only the topology defines one", clusterv1.ControlPlaneClassHealthCheck{}, clusterv1.ControlPlaneTopologyHealthCheck{Checks: own, Enabled: &yes}, "Unknown", ""},
		{"a definition that is off", clusterv1.ControlPlaneClassHealthCheck{}, clusterv1.ControlPlaneTopologyHealthCheck{Checks: own, Enabled: &no}, "", ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			objects := compute(t, input(t, func(cluster *clusterv1.Cluster, class *clusterv1.ClusterClass) {
				class.Spec.ControlPlane.HealthCheck, cluster.Spec.Topology.ControlPlane.HealthCheck = tc.class, tc.topology
			}))
			got := objects.ControlPlaneHealthCheck
			if tc.want == "" || got == nil {
				if (tc.want == "") != (got == nil) {
					t.Errorf("the check is %v", got)
				}
				return
			}
			want := clusterv1.MachineHealthCheckSpec{
				ClusterName: "c", Checks: check(tc.want),
				Remediation: clusterv1.MachineHealthCheckRemediation{TriggerIf: clusterv1.MachineHealthCheckRemediationTriggerIf{UnhealthyInRange: tc.limit}},
			}
			want.Checks.NodeStartupTimeoutSeconds = new(int32(600))
			want.Selector.MatchLabels = map[string]string{clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.MachineControlPlaneLabel: ""}
			if diff := cmp.Diff(want, got.Spec); diff != "" || got.Name != objects.ControlPlane.GetName() {
				t.Errorf("name %q, -want +got:\n%s", got.Name, diff)
			}
		})
	}
}
