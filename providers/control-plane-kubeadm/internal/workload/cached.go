package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/remote"
)

const (
	// tierLabel and its value select the static Pods of kubeadm.
	tierLabel        = "tier"
	controlPlaneTier = "control-plane"
)

// Cached returns what connections to workload clusters must cache for this package: control plane Nodes and static Pods,
// without fields that are never read.
func Cached() []remote.Cached {
	nodes := labels.NewSelector()
	// The error is for malformed names and values. These constants are valid.
	if r, err := labels.NewRequirement(snapshot.NodeRole, selection.Exists, nil); err == nil {
		nodes = nodes.Add(*r)
	}
	return []remote.Cached{
		{Object: &corev1.Node{}, Labels: nodes, Transform: stripNode},
		{
			Object: &corev1.Pod{}, Namespace: metav1.NamespaceSystem, Transform: stripPod,
			Labels: labels.SelectorFromSet(labels.Set{tierLabel: controlPlaneTier}),
		},
	}
}

// stripNode keeps labels, taints and conditions.
func stripNode(in any) (any, error) {
	node, ok := in.(*corev1.Node)
	if !ok {
		return in, nil
	}
	node.Annotations = nil
	node.Spec = corev1.NodeSpec{ProviderID: node.Spec.ProviderID, Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable}
	node.Status = corev1.NodeStatus{Conditions: node.Status.Conditions}
	return node, nil
}

// stripPod keeps the health of a Pod, and the liveness probes of its containers.
func stripPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil
	}
	pod.Annotations = nil
	spec := corev1.PodSpec{NodeName: pod.Spec.NodeName}
	for _, c := range pod.Spec.Containers {
		spec.Containers = append(spec.Containers, corev1.Container{Name: c.Name, LivenessProbe: c.LivenessProbe})
	}
	pod.Spec = spec
	pod.Status = corev1.PodStatus{
		Phase: pod.Status.Phase, Reason: pod.Status.Reason,
		Conditions: pod.Status.Conditions, ContainerStatuses: pod.Status.ContainerStatuses,
	}
	return pod, nil
}
