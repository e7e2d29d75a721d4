package machines

import (
	"context"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/apiversion"
)

// hasGates reports whether Machines get readiness gates: where v1beta1 is stored, definitions of v1.7 do not have the field, so that each
// reconcile would write it again.
func (mgr *Manager) hasGates(ctx context.Context) (bool, error) {
	boundary := apiversion.BoundaryOf(mgr.Client)
	if boundary == nil {
		return true, nil
	}
	stored, err := boundary.Stored(ctx, clusterv1.GroupVersion.WithKind(clusterv1.MachineKind).GroupKind())
	return stored == clusterv1.GroupVersion.Version, err
}

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
