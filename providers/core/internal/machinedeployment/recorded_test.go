package machinedeployment

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/replicas"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
)

// TestRecordedMachineDeployments: conditions and counters follow from the Machines as v1.14.0 wrote them.
func TestRecordedMachineDeployments(t *testing.T) {
	ignored := cmpopts.IgnoreFields(metav1.Condition{}, "ObservedGeneration", "LastTransitionTime")
	// In these states, Machines changed while they and their owner were recorded.
	inMotion := map[string][]string{
		"1-creating": {clusterv1.ScalingUpCondition, clusterv1.MachinesReadyCondition},
		"5-scaling":  {clusterv1.MachinesReadyCondition, clusterv1.ScalingUpCondition},
		"8-deleting": {clusterv1.MachinesReadyCondition, clusterv1.AvailableCondition},
	}
	seen := 0
	for _, state := range recorded.States(t, "../../../..") {
		for _, of := range state.Deployments {
			machines := state.Of(clusterv1.MachineDeploymentNameLabel, of.Name)
			if len(of.Status.Conditions) < 2 {
				continue // Its controller had not seen it yet.
			}
			seen++
			var newest metav1.Time
			for _, m := range machines {
				if newest.Before(&m.CreationTimestamp) {
					newest = m.CreationTimestamp
				}
			}
			c := &Controller{Clients: step.Clients{Clock: clocktesting.NewFakePassiveClock(newest.Time)}}
			s := &scope{deployment: of, machines: machines, listed: true}
			skipped := func(c metav1.Condition) bool {
				return c.Type == clusterv1.PausedCondition || slices.Contains(inMotion[state.Name], c.Type) // The engine adds Paused.
			}
			want := slices.DeleteFunc(slices.Clone(of.Status.Conditions), skipped)
			got := slices.DeleteFunc(c.reports(s), skipped)
			slices.SortFunc(got, func(a, b metav1.Condition) int {
				return slices.IndexFunc(want, func(c metav1.Condition) bool { return c.Type == a.Type }) -
					slices.IndexFunc(want, func(c metav1.Condition) bool { return c.Type == b.Type })
			})
			if diff := cmp.Diff(want, got, ignored); diff != "" {
				t.Errorf("%s: MachineDeployment %s (-recorded +ours):\n%s", state.Name, of.Name, diff)
			}
			if inMotion[state.Name] != nil {
				continue
			}
			ours := of.Status.DeepCopy()
			setCounts(ours, replicas.Count(machines))
			if diff := cmp.Diff(&of.Status, ours); diff != "" {
				t.Errorf("%s: counters of MachineDeployment %s (-recorded +ours):\n%s", state.Name, of.Name, diff)
			}
		}
	}
	if seen < 6 {
		t.Errorf("%d were compared", seen)
	}
}
