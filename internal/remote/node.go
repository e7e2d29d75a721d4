package remote

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NodeProviderID is the index of cached Nodes by spec.providerID.
const NodeProviderID = "spec.providerID"

// EmptyNode is a Node to declare watches with.
func EmptyNode() *corev1.Node { return &corev1.Node{} }

// Nodes caches Nodes, by provider ID, without what is large and never read: images.
func Nodes() Cached {
	return Cached{
		Object: EmptyNode(),
		Transform: func(in any) (any, error) {
			if node, ok := in.(*corev1.Node); ok {
				node.Status.Images = nil
			}
			return in, nil
		},
		Indexes: map[string]client.IndexerFunc{NodeProviderID: func(obj client.Object) []string {
			if node, ok := obj.(*corev1.Node); ok && node.Spec.ProviderID != "" {
				return []string{node.Spec.ProviderID}
			}
			return nil
		}},
	}
}
