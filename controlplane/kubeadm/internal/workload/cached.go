package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"sigs.k8s.io/cluster-api/provider/remote"
)

const (
	// tierLabel and its value mark the static Pods that kubeadm makes.
	tierLabel        = "tier"
	controlPlaneTier = "control-plane"
)

// Cached is what connections to workload clusters must cache for this package: the Nodes of the control plane, not those
// of workers, and its static Pods, both without what is never read.
func Cached() []remote.Cached {
	nodes := labels.NewSelector()
	// The error is about names and values that are malformed, which these constants are not.
	if r, err := labels.NewRequirement(controlPlaneNode, selection.Exists, nil); err == nil {
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

// stripPod keeps what tells a Pod's health, and on which ports its containers are probed.
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
