package machines

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
)

// setGates sets the readiness gates of the template, and removes those that we have set and that it no longer has. Gates that v1.14 gives
// to each control plane Machine stay where they are: Machines that it has created are not written for them, and not given to new ones
// (docs/adr/0058-readiness-gates.md).
func setGates(cp *snapshot.ControlPlane, m *clusterv1.Machine, ours *fieldpath.Set) {
	var gates []clusterv1.MachineReadinessGate
	wanted := slices.Clone(cp.KCP.Spec.MachineTemplate.Spec.ReadinessGates)
	for _, is := range m.Spec.ReadinessGates {
		i := slices.IndexFunc(wanted, func(g clusterv1.MachineReadinessGate) bool { return g.ConditionType == is.ConditionType })
		owned := ours.Has(fieldpath.MakePathOrDie("spec", "readinessGates", fieldpath.KeyByFields("conditionType", is.ConditionType)))
		switch {
		case i >= 0:
			gates, wanted = append(gates, wanted[i]), slices.Delete(wanted, i, i+1)
		case !owned || isComponentGate(is):
			gates = append(gates, is)
		}
	}
	m.Spec.ReadinessGates = append(gates, wanted...)
}

// isComponentGate reports whether a gate is one of those that v1.14 gives to each Machine.
func isComponentGate(gate clusterv1.MachineReadinessGate) bool {
	switch gate.ConditionType {
	case controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition,
		controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition:
		return true
	}
	return false
}
