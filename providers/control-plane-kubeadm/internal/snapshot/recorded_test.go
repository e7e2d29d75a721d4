package snapshot

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
)

// TestRecordedMachinesAreKept: no Machine that Cluster API v1.7.0 or v1.14.0 created is replaced after a takeover, except in an upgrade that
// they had begun, for its version alone.
func TestRecordedMachinesAreKept(t *testing.T) {
	outdated := 0
	for corpus, states := range recorded.Corpus(t, "../../../..") {
		for _, state := range states {
			spec, err := SpecOf(t.Context(), state.ControlPlane)
			testenv.Must(t, err)
			for _, machine := range state.Machines {
				if _, ok := machine.Labels[clusterv1.MachineControlPlaneLabel]; !ok || machine.DeletionTimestamp != nil {
					continue
				}
				m := &Machine{
					Machine: machine, Config: state.Configs[machine.Spec.Bootstrap.ConfigRef.Name],
					Infrastructure: state.Infrastructure[machine.Spec.InfrastructureRef.Name],
				}
				if m.Config == nil || m.Infrastructure == nil {
					t.Fatalf("%s, %s: Machine %s has KubeadmConfig %v and infrastructure %v", corpus, state.Name, m.Name, m.Config, m.Infrastructure)
				}
				got, err := OutdatedReasons(t.Context(), spec, m, machine.CreationTimestamp.Add(24*time.Hour))
				testenv.Must(t, err)
				var want []string
				if machine.Spec.Version != spec.Version {
					want = []string{fmt.Sprintf("version %s is not %s", machine.Spec.Version, spec.Version)}
					outdated++
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, %s: reasons to replace Machine %s, -want +got:\n%s", corpus, state.Name, m.Name, diff)
				}
			}
		}
	}
	if outdated < 3 {
		t.Errorf("%d Machines of upgrades are outdated, want one of each corpus", outdated)
	}
}
