package topologyplan

import (
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// heldDeployment returns why a MachineDeployment does not replace Machines on its own; empty if it does.
func heldDeployment(md *clusterv1.MachineDeployment) string {
	if ptr.Deref(md.Spec.Paused, false) {
		return paused
	}
	if md.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType {
		return "its strategy is OnDelete: each Machine is replaced once it has been deleted"
	}
	return pausedObject(md.Annotations)
}

// pausedObject returns why the controller of an object with annotations does nothing; empty if it is not paused.
func pausedObject(annotations map[string]string) string {
	if _, is := annotations[clusterv1.PausedAnnotation]; is {
		return paused
	}
	return ""
}

const paused = "it is paused"
