package v1beta2

import "testing"

func TestTypedPhases(t *testing.T) {
	tests := map[string]struct {
		reason string
		get    func(phase string) string
		known  []string
	}{
		"Cluster": {
			reason: "the phases of Clusters",
			get: func(phase string) string {
				return string((&ClusterStatus{Phase: phase}).GetTypedPhase())
			},
			known: []string{"Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"},
		},
		"Machine": {
			reason: "the phases of Machines",
			get: func(phase string) string {
				return string((&MachineStatus{Phase: phase}).GetTypedPhase())
			},
			known: []string{
				"Pending", "Provisioning", "Provisioned", "Running", "Updating", "Deleting", "Deleted", "Failed", "Unknown",
			},
		},
		"MachineDeployment": {
			reason: "the phases of MachineDeployments",
			get: func(phase string) string {
				return string((&MachineDeploymentStatus{Phase: phase}).GetTypedPhase())
			},
			known: []string{"ScalingUp", "ScalingDown", "Running", "Failed", "Unknown"},
		},
		"MachinePool": {
			reason: "the phases of MachinePools",
			get: func(phase string) string {
				return string((&MachinePoolStatus{Phase: phase}).GetTypedPhase())
			},
			known: []string{
				"Pending", "Provisioning", "Provisioned", "Running", "ScalingUp", "ScalingDown", "Scaling", "Deleting",
				"Failed", "Unknown",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, phase := range tc.known {
				if got := tc.get(phase); got != phase {
					t.Errorf("%s: %q reads as %q", tc.reason, phase, got)
				}
			}
			for _, phase := range []string{"", "running", "Elsewhere"} {
				if got := tc.get(phase); got != "Unknown" {
					t.Errorf("%s: %q reads as %q, want Unknown", tc.reason, phase, got)
				}
			}
		})
	}
}
