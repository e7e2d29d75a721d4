package health

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// Reports returns the metav1 conditions for health conditions of a Machine. They have the same types.
func Reports(conditions []clusterv1.Condition) []metav1.Condition {
	var all []metav1.Condition
	for _, c := range conditions {
		t := string(c.Type)
		switch {
		case c.Status == corev1.ConditionTrue && c.Type == controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition:
			all = append(all, report.True(t, controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyReason, ""))
		case c.Status == corev1.ConditionTrue:
			all = append(all, report.True(t, controlplanev1.KubeadmControlPlaneMachinePodRunningReason, ""))
		case c.Status == corev1.ConditionUnknown:
			all = append(all, report.Unknown(t, clusterv1.InspectionFailedReason, "%s", c.Message))
		case c.Reason == clusterv1.DeletingV1Beta1Reason:
			all = append(all, report.False(t, clusterv1.DeletingReason, "%s", cmp.Or(c.Message, "Machine is deleting")))
		case c.Type == controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition:
			all = append(all, report.False(t, controlplanev1.KubeadmControlPlaneMachineEtcdMemberNotHealthyReason, "%s", c.Message))
		default:
			all = append(all, report.False(t, podReason(c.Reason), "%s", c.Message))
		}
	}
	return all
}

// Lost returns the metav1 conditions of a Machine whose workload cluster has been unreachable since then. Machines without a Node have
// none.
// Conditions that say so already stay as they are: a manager that has started meanwhile does not know when the cluster was reachable.
func Lost(cp *snapshot.ControlPlane, m *snapshot.Machine, since time.Time) []metav1.Condition {
	if m.Node() == "" {
		return nil
	}
	types := []string{controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition}
	for _, t := range Types(cp.StackedEtcd()) {
		types = append(types, string(t))
	}
	var all []metav1.Condition
	for _, t := range types {
		if known := report.Get(m, t); known == nil || known.Reason != clusterv1.ConnectionDownReason {
			all = append(all, report.Unknown(t, clusterv1.ConnectionDownReason, "Last successful probe at %s", since.UTC().Format(time.RFC3339)))
		}
	}
	return all
}

// podReason returns the reason of v1beta2 for one of v1beta1.
func podReason(reason string) string {
	switch reason {
	case controlplanev1.PodMissingV1Beta1Reason:
		return controlplanev1.KubeadmControlPlaneMachinePodDoesNotExistReason
	case controlplanev1.PodProvisioningV1Beta1Reason:
		return controlplanev1.KubeadmControlPlaneMachinePodProvisioningReason
	}
	return controlplanev1.KubeadmControlPlaneMachinePodFailedReason
}

// NodeReports returns the condition of whether the Node of a Machine is marked as kubeadm does it. There is none before it has a Node.
func NodeReports(m *snapshot.Machine, observed *Observation) []metav1.Condition {
	const t = controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition
	name := m.Node()
	switch {
	case name == "":
		return nil
	case m.Deleting():
		return []metav1.Condition{report.False(t, clusterv1.DeletingReason, "Machine is deleting")}
	case observed == nil:
		return []metav1.Condition{report.Unknown(t, clusterv1.InspectionFailedReason, "The workload cluster is unreachable")}
	}
	const notSet = controlplanev1.KubeadmControlPlaneMachineNodeLabelsAndTaintsNotSetReason
	node := observed.Nodes[name] // Only Nodes with the label are observed.
	switch {
	case node == nil:
		return []metav1.Condition{report.False(t, notSet, "Node %s with label %s does not exist", name, snapshot.NodeRole)}
	case tainted(m) && !slices.ContainsFunc(node.Spec.Taints, marks):
		return []metav1.Condition{report.False(t, notSet, "Node %s does not have taint %s:NoSchedule", name, snapshot.NodeRole)}
	}
	return []metav1.Condition{report.True(t, controlplanev1.KubeadmControlPlaneMachineNodeLabelsAndTaintsSetReason, "")}
}

// tainted reports whether kubeadm taints the Node of a Machine: it does unless the KubeadmConfig, which has one of both sections, lists
// other taints.
func tainted(m *snapshot.Machine) bool {
	if m.Config == nil {
		return false
	}
	spec := m.Config.Spec
	taints := cmp.Or(spec.InitConfiguration.NodeRegistration.Taints, spec.JoinConfiguration.NodeRegistration.Taints)
	return taints == nil || slices.ContainsFunc(*taints, marks)
}

// marks reports whether a taint is the one of control planes.
func marks(t corev1.Taint) bool {
	return t.Key == snapshot.NodeRole && t.Effect == corev1.TaintEffectNoSchedule
}
