package controlplane

import (
	"testing"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
)

// Waiting for a Machine that comes up is no news; waiting for one that worked is.
func TestWhatFailedIsToldFromWhatStarts(t *testing.T) {
	for worked, want := range map[bool]bool{true: true, false: false} {
		b, f := three(t)
		delete(f.pods, "kube-scheduler-b")
		reload(t, b, f)
		if !worked {
			condition.Delete(b.named("b"), controlplanev1.MachineSchedulerPodHealthyCondition)
		}
		if _, err := b.inspect(t.Context(), b.scope); err != nil {
			t.Fatal(err)
		}
		if b.failed != want || condition.IsTrue(b.named("b"), controlplanev1.MachineSchedulerPodHealthyCondition) {
			t.Errorf("it worked before: %t; counts as failed: %t, want %t", worked, b.failed, want)
		}
	}
}
