package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
)

// TestRecordedMachines: Ready and Available follow from the other conditions as v1.14.0 wrote them.
func TestRecordedMachines(t *testing.T) {
	ignored := cmpopts.IgnoreFields(metav1.Condition{}, "ObservedGeneration", "LastTransitionTime")
	for _, state := range recorded.States(t, "../../../..") {
		for _, m := range state.Machines {
			s := &scope{machine: m}
			deleting, want := report.Get(m, clusterv1.DeletingCondition), report.Get(m, clusterv1.ReadyCondition)
			if deleting == nil || want == nil {
				continue // Its controller had not seen it yet.
			}
			if state.Name == "5-scaling" && deleting.Status == metav1.ConditionTrue {
				continue // The control plane provider wrote a condition after Ready.
			}
			s.now = deleting.LastTransitionTime.Time
			now := []metav1.Condition{*deleting, *report.Get(m, clusterv1.MachineUpdatingCondition)}
			ready := s.readyReport(now)
			if diff := cmp.Diff(*want, ready, ignored); diff != "" {
				t.Errorf("%s: Machine %s, Ready (-recorded +ours):\n%s", state.Name, m.Name, diff)
			}
			available, _ := s.availableReport(ready, s.now)
			if diff := cmp.Diff(*report.Get(m, clusterv1.AvailableCondition), available, ignored); diff != "" {
				t.Errorf("%s: Machine %s, Available (-recorded +ours):\n%s", state.Name, m.Name, diff)
			}
		}
	}
}
