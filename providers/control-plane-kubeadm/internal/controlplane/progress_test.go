package controlplane

import (
	"slices"
	"testing"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Other controllers and preflight checks read these conditions, so a first status with one of them is not delayed.
func TestConditionsThatAreReadAreNotDelayed(t *testing.T) {
	for _, read := range []clusterv1.ConditionType{clusterv1.ReadyCondition, controlplanev1.AvailableCondition, controlplanev1.MachinesReadyCondition, controlplanev1.ResizedCondition} {
		if slices.Contains(progress().FirstTrue, read) {
			t.Errorf("condition %s is delayed", read)
		}
	}
}
