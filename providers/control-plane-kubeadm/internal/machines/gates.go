package machines

import (
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
)

// readinessGates returns the readiness gates of a Machine: the conditions of the control plane's components, those of etcd unless it is
// external, and the gates of the template, without duplicates. They are in this order in v1.14.
func readinessGates(cp *snapshot.ControlPlane) []clusterv1.MachineReadinessGate {
	ours := []string{
		controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition,
		controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition,
	}
	if cp.StackedEtcd() {
		ours = append(ours, controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition,
			controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition)
	}
	var gates []clusterv1.MachineReadinessGate
	seen := map[string]bool{}
	for _, t := range ours {
		gates, seen[t] = append(gates, clusterv1.MachineReadinessGate{ConditionType: t}), true
	}
	for _, gate := range cp.KCP.Spec.MachineTemplate.Spec.ReadinessGates {
		if !seen[gate.ConditionType] { // The list is a map by type: a duplicate would be rejected.
			gates = append(gates, gate)
		}
	}
	return gates
}
