package controlplane

import (
	"testing"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// A component that has never been healthy has not regressed.
func TestRegression(t *testing.T) {
	for healthy, want := range map[bool]bool{true: true, false: false} {
		b, f := three(t)
		delete(f.PodObjects, "kube-scheduler-b")
		if !healthy {
			condition.Delete(b.Named("b"), controlplanev1.MachineSchedulerPodHealthyV1Beta1Condition)
		}
		if _, err := b.take(t.Context(), "inspect"); err != nil {
			t.Fatal(err)
		}
		if b.s.regressed != want || condition.IsTrue(b.Named("b"), controlplanev1.MachineSchedulerPodHealthyV1Beta1Condition) {
			t.Errorf("healthy before: %t, regressed: %t, want %t", healthy, b.s.regressed, want)
		}
	}
}
