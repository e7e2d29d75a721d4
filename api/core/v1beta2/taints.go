package v1beta2

import corev1 "k8s.io/api/core/v1"

var (
	// NodeUninitializedTaint is on new worker Nodes until the labels of their Machine have been copied to them.
	NodeUninitializedTaint = corev1.Taint{
		Key:    "node.cluster.x-k8s.io/uninitialized",
		Effect: corev1.TaintEffectNoSchedule,
	}

	// NodeOutdatedRevisionTaint is on Nodes that a rollout of their MachineDeployment is going to replace, so that Pods
	// prefer Nodes that stay.
	NodeOutdatedRevisionTaint = corev1.Taint{
		Key:    "node.cluster.x-k8s.io/outdated-revision",
		Effect: corev1.TaintEffectPreferNoSchedule,
	}
)
