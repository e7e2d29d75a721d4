package health

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// EtcdBackstop is the interval at which etcd is queried while something waits for it: changes of its members cause no events.
const EtcdBackstop = 5 * time.Second

// Component is a static Pod of the control plane: "<prefix>-<node>".
type Component struct {
	prefix string
	// Condition is the condition of the Machine for this component.
	Condition clusterv1.ConditionType
}

// Components returns the static Pods of every Machine, in the order in which they are reported. etcd is one of them if it is
// stacked.
func Components(stackedEtcd bool) []Component {
	all := []Component{
		{"kube-apiserver", controlplanev1.MachineAPIServerPodHealthyV1Beta1Condition},
		{"kube-controller-manager", controlplanev1.MachineControllerManagerPodHealthyV1Beta1Condition},
		{"kube-scheduler", controlplanev1.MachineSchedulerPodHealthyV1Beta1Condition},
		{"etcd", controlplanev1.MachineEtcdPodHealthyV1Beta1Condition},
	}
	if !stackedEtcd {
		return all[:3]
	}
	return all
}

// Types returns the types of all health conditions of a Machine.
func Types(stackedEtcd bool) []clusterv1.ConditionType {
	var types []clusterv1.ConditionType
	for _, c := range Components(stackedEtcd) {
		types = append(types, c.Condition)
	}
	if stackedEtcd {
		types = append(types, controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition)
	}
	return types
}

// Conditions returns the health conditions of a Machine. A Machine without a Node has none: its components are unknown.
func Conditions(cp *snapshot.ControlPlane, m *snapshot.Machine, observed *Observation) []clusterv1.Condition {
	node := m.Node()
	switch {
	case node == "":
		return nil
	case m.Deleting():
		var all []clusterv1.Condition
		for _, t := range Types(cp.StackedEtcd()) {
			// The condition of the etcd member may already report what the deletion waits for (package membership).
			if current := condition.Get(m, t); current == nil || current.Reason != clusterv1.DeletingV1Beta1Reason {
				all = append(all, condition.False(t, clusterv1.ConditionSeverityInfo, clusterv1.DeletingV1Beta1Reason, ""))
			}
		}
		return all
	case observed == nil:
		return unknown(cp.StackedEtcd())
	}
	all := podConditions(observed, node, cp.StackedEtcd())
	if cp.StackedEtcd() {
		all = append(all, memberCondition(observed, node))
	}
	return all
}

// unknown returns the conditions of every Machine while the workload cluster is unreachable.
func unknown(stackedEtcd bool) []clusterv1.Condition {
	const message = "The workload cluster is unreachable"
	var all []clusterv1.Condition
	for _, component := range Components(stackedEtcd) {
		all = append(all, condition.Unknown(component.Condition, controlplanev1.PodInspectionFailedV1Beta1Reason, message))
	}
	if stackedEtcd {
		all = append(all,
			condition.Unknown(controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition,
				controlplanev1.EtcdMemberInspectionFailedV1Beta1Reason, message))
	}
	return all
}

// podConditions returns the conditions of the components on a Node.
func podConditions(o *Observation, name string, stackedEtcd bool) []clusterv1.Condition {
	var all []clusterv1.Condition
	node := o.Nodes[name]
	for _, c := range Components(stackedEtcd) {
		switch {
		case node == nil:
			all = append(all,
				condition.False(c.Condition, clusterv1.ConditionSeverityError, controlplanev1.PodFailedV1Beta1Reason, "Node %s does not exist", name))
		case Unreachable(node):
			all = append(all, condition.Unknown(c.Condition, controlplanev1.PodInspectionFailedV1Beta1Reason, "Node %s is unreachable", name))
		default:
			all = append(all, podCondition(c, name, o.Pods[c.prefix+"-"+name]))
		}
	}
	return all
}

func podCondition(c Component, node string, pod *corev1.Pod) clusterv1.Condition {
	name := c.prefix + "-" + node
	switch {
	case pod == nil:
		return condition.False(c.Condition, clusterv1.ConditionSeverityError, controlplanev1.PodMissingV1Beta1Reason,
			"Pod %s does not exist", name)
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		return condition.False(c.Condition, clusterv1.ConditionSeverityError, controlplanev1.PodFailedV1Beta1Reason,
			"Pod %s has terminated", name)
	case PodReady(pod):
		return condition.True(c.Condition)
	}
	if reason := Crashing(pod); reason != "" {
		return condition.False(c.Condition, clusterv1.ConditionSeverityError, controlplanev1.PodFailedV1Beta1Reason,
			"Pod %s: %s", name, reason)
	}
	return condition.False(c.Condition, clusterv1.ConditionSeverityInfo, controlplanev1.PodProvisioningV1Beta1Reason,
		"Pod %s is not ready yet", name)
}

// PodReady reports whether a Pod is running and ready.
func PodReady(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Crashing returns why a container of a Pod fails, empty if none is known to fail.
func Crashing(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return condition.Brief(w.Reason)
		}
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return "container " + condition.Brief(s.Name) + " failed"
		}
	}
	return ""
}

// Unreachable reports whether a Node has the unreachable taint.
func Unreachable(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnreachable })
}

// NodeReady reports whether a Node is ready.
func NodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// unresponsive reports whether the etcd member on a Node cannot respond, for other reasons than that it is still starting.
func (o *Observation) unresponsive(name string) bool {
	node, pod := o.Nodes[name], o.Pods["etcd-"+name]
	if node == nil || Unreachable(node) || pod == nil {
		return true
	}
	return podCondition(Component{prefix: "etcd"}, name, pod).Severity == clusterv1.ConditionSeverityError
}

// memberCondition returns the condition of the etcd member on a Node. All members must report the same list of members.
func memberCondition(o *Observation, node string) clusterv1.Condition {
	const kind = controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition
	unhealthy := func(format string, args ...any) clusterv1.Condition {
		return condition.False(kind, clusterv1.ConditionSeverityError, controlplanev1.EtcdMemberUnhealthyV1Beta1Reason, format, args...)
	}
	member, queried := o.Etcd[node]
	switch {
	case !queried && o.unresponsive(node):
		return unhealthy("The etcd member on Node %s is unreachable", node)
	case !queried:
		return condition.Unknown(kind, controlplanev1.EtcdMemberInspectionFailedV1Beta1Reason, "The etcd Pod on Node %s is not ready yet", node)
	case member.Err != nil:
		return unhealthy("The etcd member on Node %s does not respond", node)
	case !slices.Contains(member.Members, node):
		return unhealthy("etcd has no member for Node %s", node)
	case len(member.Alarms) > 0:
		return unhealthy("The etcd member on Node %s reports alarms: %s", node, strings.Join(member.Alarms, ", "))
	}
	for _, other := range o.Etcd {
		if other.Err != nil {
			continue
		}
		if other.ClusterID != member.ClusterID {
			return unhealthy("The etcd members belong to different clusters")
		}
		if !slices.Equal(other.Members, member.Members) {
			return unhealthy("The etcd members report different lists of members")
		}
	}
	return condition.True(kind)
}
