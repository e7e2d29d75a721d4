package health

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1beta2 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// Reports returns the metav1 conditions for health conditions of a Machine. They have the same types.
func Reports(conditions []clusterv1.Condition) []metav1.Condition {
	var all []metav1.Condition
	for _, c := range conditions {
		t := string(c.Type)
		switch {
		case c.Status == corev1.ConditionTrue && c.Type == controlplanev1.MachineEtcdMemberHealthyCondition:
			all = append(all, report.True(t, controlplanev1beta2.KubeadmControlPlaneMachineEtcdMemberHealthyReason, ""))
		case c.Status == corev1.ConditionTrue:
			all = append(all, report.True(t, controlplanev1beta2.KubeadmControlPlaneMachinePodRunningReason, ""))
		case c.Status == corev1.ConditionUnknown:
			all = append(all, report.Unknown(t, clusterv1beta2.InspectionFailedReason, "%s", c.Message))
		case c.Reason == clusterv1.DeletingReason:
			all = append(all, report.False(t, clusterv1beta2.DeletingReason, "%s", cmp.Or(c.Message, "Machine is deleting")))
		case c.Type == controlplanev1.MachineEtcdMemberHealthyCondition:
			all = append(all, report.False(t, controlplanev1beta2.KubeadmControlPlaneMachineEtcdMemberNotHealthyReason, "%s", c.Message))
		default:
			all = append(all, report.False(t, podReason(c.Reason), "%s", c.Message))
		}
	}
	return all
}

// podReason returns the reason of v1beta2 for one of v1beta1.
func podReason(reason string) string {
	switch reason {
	case controlplanev1.PodMissingReason:
		return controlplanev1beta2.KubeadmControlPlaneMachinePodDoesNotExistReason
	case controlplanev1.PodProvisioningReason:
		return controlplanev1beta2.KubeadmControlPlaneMachinePodProvisioningReason
	}
	return controlplanev1beta2.KubeadmControlPlaneMachinePodFailedReason
}
