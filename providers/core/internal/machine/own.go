package machine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// owns reports whether a Node with the name in status.nodeRef is the Machine's: a newer machine may have registered under the
// same name. A Node without a provider ID is that of an unknown machine: it had one when status.nodeRef was set.
func owns(m *clusterv1.Machine, node *corev1.Node) bool {
	return node.Spec.ProviderID == m.Spec.ProviderID
}

// ownNode returns the Machine's Node, nil if it does not exist.
func ownNode(ctx context.Context, workload client.Reader, m *clusterv1.Machine) (*corev1.Node, error) {
	node := &corev1.Node{}
	if err := workload.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Node %s: %w", m.Status.NodeRef.Name, err)
	}
	if !owns(m, node) {
		return nil, nil
	}
	return node, nil
}

// rival returns the name of another Machine that already has this Node, or empty. Infrastructure objects set provider IDs, and
// two of them may set the same one.
func (c *Controller) rival(ctx context.Context, m *clusterv1.Machine, node *corev1.Node) (string, error) {
	list := &clusterv1.MachineList{}
	err := c.Client.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingFields{ByProviderID.Field: node.Spec.ProviderID})
	if err != nil {
		return "", fmt.Errorf("listing Machines with provider ID %s: %w", node.Spec.ProviderID, err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID != m.UID && other.Spec.ClusterName == m.Spec.ClusterName && other.Status.NodeRef.IsDefined() &&
			other.Status.NodeRef.Name == node.Name {
			return other.Name, nil
		}
	}
	return "", nil
}
