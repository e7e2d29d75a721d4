package machinedeployment

import (
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
)

// TestRecordedMachineSetsAreKept: the MachineSet that Cluster API v1.7.0 or v1.14.0 created last is the current one after a takeover, unless
// the version of its MachineDeployment has changed since.
func TestRecordedMachineSetsAreKept(t *testing.T) {
	kept := 0
	for corpus, states := range recorded.Corpus(t, "../../../..") {
		for _, state := range states {
			for _, md := range state.Deployments {
				got := Current(md, state.Sets, md.CreationTimestamp.Add(24*time.Hour))
				for _, set := range state.Sets {
					if set.Spec.Template.Spec.Version != md.Spec.Template.Spec.Version || set.DeletionTimestamp != nil {
						continue
					}
					kept++
					if got == nil || got.Name != set.Name {
						t.Errorf("%s, %s: MachineDeployment %s keeps %v, want MachineSet %s", corpus, state.Name, md.Name, got, set.Name)
					}
				}
			}
		}
	}
	if kept < 12 {
		t.Errorf("only %d MachineSets were compared", kept)
	}
}
