package remote

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NodeProviderID is the name of the index of cached Nodes by spec.providerID.
const NodeProviderID = "spec.providerID"

// Nodes caches Nodes, with an index by provider ID. Only the fields that controllers read are cached: metadata with our annotations, and
// parts of spec and status.
func Nodes() Cached {
	return Cached{
		Object: &corev1.Node{},
		Transform: func(in any) (any, error) {
			if node, ok := in.(*corev1.Node); ok {
				maps.DeleteFunc(node.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, annotationDomain) })
				node.OwnerReferences, node.Finalizers = nil, nil
				node.Spec, node.Status = nodeSpec(node.Spec), nodeStatus(node.Status)
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

// annotationDomain is the prefix of the annotations that controllers set on Nodes.
const annotationDomain = "cluster.x-k8s.io/"

func nodeSpec(s corev1.NodeSpec) corev1.NodeSpec {
	return corev1.NodeSpec{ProviderID: s.ProviderID, Taints: s.Taints, Unschedulable: s.Unschedulable}
}

func nodeStatus(s corev1.NodeStatus) corev1.NodeStatus {
	return corev1.NodeStatus{Conditions: s.Conditions, NodeInfo: s.NodeInfo, VolumesAttached: s.VolumesAttached}
}
