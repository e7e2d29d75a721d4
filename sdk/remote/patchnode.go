package remote

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SetTaint adds a taint to a Node in memory, or removes it.
func SetTaint(node *corev1.Node, taint corev1.Taint, on bool) {
	matches := func(t corev1.Taint) bool { return t.MatchTaint(&taint) }
	exists := slices.ContainsFunc(node.Spec.Taints, matches)
	switch {
	case on && !exists:
		node.Spec.Taints = append(node.Spec.Taints, taint)
	case !on && exists:
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, matches)
	}
}

// PatchNode writes the changes of a Node's metadata and spec with one request, and sends none without changes. Taints are one list to
// a patch, so a change of them is a conflict if another client wrote the Node since it was read.
func PatchNode(ctx context.Context, workload client.Writer, before, after *corev1.Node) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch := client.StrategicMergeFrom(before)
	if !equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) {
		patch = client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	}
	return workload.Patch(ctx, after, patch)
}
