package machine

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestPhase(t *testing.T) {
	bootstrapped := func(m *clusterv1.Machine) { m.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true) }
	up := func(m *clusterv1.Machine) { m.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }
	hasFailed := func(m *clusterv1.Machine) { m.Status.Deprecated = failed("", "no luck", nil) }
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		want    clusterv1.MachinePhase
	}{
		"New":          {"nothing is ready", machine(), clusterv1.MachinePhasePending},
		"Bootstrapped": {"the bootstrap data is ready", machine(bootstrapped), clusterv1.MachinePhaseProvisioning},
		"Up":           {"the infrastructure is ready", machine(bootstrapped, up, withProviderID), clusterv1.MachinePhaseProvisioned},
		"Joined":       {"the Node has joined", machine(bootstrapped, up, withNode), clusterv1.MachinePhaseRunning},
		"Down":         {"a Node without ready infrastructure does not count", machine(bootstrapped, withNode), clusterv1.MachinePhaseProvisioned},
		"Failed":       {"a failure takes precedence", machine(bootstrapped, up, withNode, hasFailed), clusterv1.MachinePhaseFailed},
		"Deleting":     {"deletion takes precedence over a failure", machine(bootstrapped, up, withNode, hasFailed, deleting), clusterv1.MachinePhaseDeleting},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if _, err := w.phase(t.Context(), &scope{machine: tc.machine}); err != nil {
				t.Fatal(err)
			}
			if got := tc.machine.Status.Phase; got != string(tc.want) || tc.machine.Status.LastUpdated.IsZero() {
				t.Fatalf("%s: phase = %s since %v, want %s", tc.reason, got, tc.machine.Status.LastUpdated, tc.want)
			}
			since := tc.machine.Status.LastUpdated
			w.Clock.SetTime(now.Add(time.Hour))
			if _, err := w.phase(t.Context(), &scope{machine: tc.machine}); err != nil || !tc.machine.Status.LastUpdated.Equal(&since) {
				t.Errorf("%s: lastUpdated changed, but the phase did not", tc.reason)
			}
		})
	}
}
