package controlplane

import (
	"slices"
	"testing"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Other controllers and preflight checks read these conditions, so a first status with one of them is not delayed.
func TestConditionsThatAreReadAreNotDelayed(t *testing.T) {
	for _, read := range []clusterv1.ConditionType{clusterv1.ReadyV1Beta1Condition, controlplanev1.AvailableV1Beta1Condition, controlplanev1.MachinesReadyV1Beta1Condition, controlplanev1.ResizedV1Beta1Condition} {
		if slices.Contains(progress().FirstTrue, read) {
			t.Errorf("condition %s is delayed", read)
		}
	}
}
