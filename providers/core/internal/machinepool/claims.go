package machinepool

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machine"
)

// claims returns the Machine of the pool with the provider ID of a Node, nil if there is none, and which Machine or MachinePool the
// Node belongs to instead, empty if none. Provider objects set provider IDs, and two of them may set the same: without a decision,
// controllers would overwrite each other's annotations forever, and one would delete the Node of another.
func (c *Controller) claims(ctx context.Context, s *scope, node *corev1.Node) (own *clusterv1.Machine, rival string, err error) {
	id := node.Spec.ProviderID
	machines := &clusterv1.MachineList{}
	err = c.Client.List(ctx, machines, client.InNamespace(s.pool.Namespace), client.MatchingFields{machine.ByProviderID.Field: id})
	if err != nil {
		return nil, "", fmt.Errorf("listing Machines with provider ID %s: %w", id, err)
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		if m.Spec.ClusterName != s.pool.Spec.ClusterName {
			continue
		}
		if !metav1.IsControlledBy(m, s.pool) {
			return nil, "Machine " + m.Name, nil
		}
		own = m
	}
	pools := &clusterv1.MachinePoolList{}
	if err := c.Client.List(ctx, pools, client.InNamespace(s.pool.Namespace), client.MatchingFields{byProviderID: id}); err != nil {
		return nil, "", fmt.Errorf("listing MachinePools with provider ID %s: %w", id, err)
	}
	for i := range pools.Items {
		other := &pools.Items[i]
		if other.UID != s.pool.UID && other.Spec.ClusterName == s.pool.Spec.ClusterName && precedes(other, s.pool, node) {
			return nil, "MachinePool " + other.Name, nil
		}
	}
	return own, "", nil
}

// precedes reports whether a Node belongs to pool a rather than to b, which both list its provider ID: to the one that has it
// already, otherwise to the older one.
func precedes(a, b *clusterv1.MachinePool, node *corev1.Node) bool {
	if hasA, hasB := refersTo(a, node), refersTo(b, node); hasA != hasB {
		return hasA
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}
