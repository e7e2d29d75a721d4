package controlplane

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// Observation is what was seen of a control plane in its workload cluster.
type Observation struct {
	// Nodes by name.
	Nodes map[string]*corev1.Node
	// Pods by name.
	Pods map[string]*corev1.Pod
	// Etcd is what members said, by Node. Nodes that were not asked have no entry.
	Etcd map[string]EtcdMember
}

// component is a static Pod of the control plane: "<prefix>-<node>".
type component struct {
	prefix    string
	condition clusterv1.ConditionType
}

// components are the static Pods of every Machine, in the order in which they are talked about; the last only where
// etcd runs on the Machines.
func components(stacked bool) []component {
	all := []component{
		{"kube-apiserver", controlplanev1.MachineAPIServerPodHealthyCondition},
		{"kube-controller-manager", controlplanev1.MachineControllerManagerPodHealthyCondition},
		{"kube-scheduler", controlplanev1.MachineSchedulerPodHealthyCondition},
		{"etcd", controlplanev1.MachineEtcdPodHealthyCondition},
	}
	if !stacked {
		return all[:3]
	}
	return all
}

// healthTypes are all conditions that tell the health of a Machine.
func healthTypes(stacked bool) []clusterv1.ConditionType {
	var types []clusterv1.ConditionType
	for _, c := range components(stacked) {
		types = append(types, c.condition)
	}
	if stacked {
		types = append(types, controlplanev1.MachineEtcdMemberHealthyCondition)
	}
	return types
}

// podConditions are the conditions of the components on a Node; node is nil if it does not exist.
func podConditions(o *Observation, name string, stacked bool) []clusterv1.Condition {
	var all []clusterv1.Condition
	node := o.Nodes[name]
	for _, c := range components(stacked) {
		switch {
		case node == nil:
			all = append(all, condition.False(c.condition, clusterv1.ConditionSeverityError, controlplanev1.PodFailedReason, "Node %s does not exist", name))
		case unreachable(node):
			all = append(all, condition.Unknown(c.condition, controlplanev1.PodInspectionFailedReason, "Node %s is unreachable", name))
		default:
			all = append(all, podCondition(c, name, o.Pods[c.prefix+"-"+name]))
		}
	}
	return all
}

func podCondition(c component, node string, pod *corev1.Pod) clusterv1.Condition {
	name := c.prefix + "-" + node
	switch {
	case pod == nil:
		return condition.False(c.condition, clusterv1.ConditionSeverityError, controlplanev1.PodMissingReason, "Pod %s does not exist", name)
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		return condition.False(c.condition, clusterv1.ConditionSeverityError, controlplanev1.PodFailedReason, "Pod %s has ended", name)
	case podReady(pod):
		return condition.True(c.condition)
	}
	if reason := crashing(pod); reason != "" {
		return condition.False(c.condition, clusterv1.ConditionSeverityError, controlplanev1.PodFailedReason, "Pod %s: %s", name, reason)
	}
	return condition.False(c.condition, clusterv1.ConditionSeverityInfo, controlplanev1.PodProvisioningReason, "Pod %s is not ready yet", name)
}

func podReady(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// crashing is why a container does not stay up, empty as long as none is known to fail.
func crashing(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return brief(w.Reason)
		}
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			return "container " + brief(s.Name) + " failed"
		}
	}
	return ""
}

// maxBrief bounds what a workload cluster says where it becomes part of a condition or an event.
const maxBrief = 200

// brief cuts text of a workload cluster short.
func brief(text string) string {
	if len(text) <= maxBrief {
		return text
	}
	return strings.ToValidUTF8(text[:maxBrief], "") + "..."
}

func unreachable(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnreachable })
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// silent: the member on a Node cannot answer, and not because it is still starting.
func (o *Observation) silent(name string) bool {
	node, pod := o.Nodes[name], o.Pods["etcd-"+name]
	if node == nil || unreachable(node) || pod == nil {
		return true
	}
	return podCondition(component{prefix: "etcd"}, name, pod).Severity == clusterv1.ConditionSeverityError
}

// memberCondition is the condition of the etcd member on a Node. All members must agree on who belongs to the cluster:
// others is what they say.
func memberCondition(o *Observation, node string) clusterv1.Condition {
	const kind = controlplanev1.MachineEtcdMemberHealthyCondition
	unhealthy := func(format string, args ...any) clusterv1.Condition {
		return condition.False(kind, clusterv1.ConditionSeverityError, controlplanev1.EtcdMemberUnhealthyReason, format, args...)
	}
	member, asked := o.Etcd[node]
	switch {
	case !asked && o.silent(node):
		return unhealthy("The etcd member on Node %s cannot be asked", node)
	case !asked:
		return condition.Unknown(kind, controlplanev1.EtcdMemberInspectionFailedReason, "The etcd Pod on Node %s is not ready to be asked", node)
	case member.Err != nil:
		return unhealthy("The etcd member on Node %s does not answer", node)
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
			return unhealthy("The etcd members disagree on who is a member")
		}
	}
	return condition.True(kind)
}
