package bounds

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxUID is the maximum size of UIDs, in bytes. Those of API servers have 36.
const maxUID = 256

// NodeReference returns a reference to a Node. It is an error if the name or UID cannot come from an API server.
func NodeReference(node *corev1.Node) (*corev1.ObjectReference, error) {
	if len(validation.IsDNS1123Subdomain(node.Name)) > 0 || len(node.UID) > maxUID {
		return nil, fmt.Errorf("the Node with provider ID %.100q has an invalid name or UID", node.Spec.ProviderID)
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: types.UID(string(node.UID))}, nil
}
