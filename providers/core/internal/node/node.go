// Package node has what the Machine and MachinePool controllers share about Nodes of workload clusters, which are not trusted:
// references to them, and how their annotations, labels and taints are changed.
//
// What does not belong here: which Node belongs to which Machine.
package node

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxUID is the maximum size of UIDs, in bytes. Those of API servers have 36.
const maxUID = 256

// Reference returns a reference to a Node. It is an error if the name or UID cannot come from an API server.
func Reference(node *corev1.Node) (*corev1.ObjectReference, error) {
	if len(validation.IsDNS1123Subdomain(node.Name)) > 0 || len(node.UID) > maxUID {
		return nil, fmt.Errorf("the Node with provider ID %.100q has an invalid name or UID", node.Spec.ProviderID)
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: types.UID(string(node.UID))}, nil
}

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

// Patch writes the changes of a Node's metadata and taints with one request, and sends none without changes. Taints are one list to
// a patch, so a change of them is a conflict if another client wrote the Node since it was read.
func Patch(ctx context.Context, workload client.Writer, before, after *corev1.Node) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch := client.StrategicMergeFrom(before)
	if !equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) {
		patch = client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	}
	if err := workload.Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("updating labels, annotations and taints of Node %s: %w", before.Name, err)
	}
	return nil
}
