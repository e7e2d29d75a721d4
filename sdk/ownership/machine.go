package ownership

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// MachineOf returns the Machine that controls an object. It returns nil without error if there is none, or if it does not exist.
func MachineOf(ctx context.Context, c client.Reader, obj client.Object) (*clusterv1.Machine, error) {
	owner := metav1.GetControllerOf(obj)
	if owner == nil ||
		!sameOwner(*owner, metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.MachineKind, Name: owner.Name}) {
		return nil, nil
	}
	machine := &clusterv1.Machine{}
	err := c.Get(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: owner.Name}, machine)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Machine %s/%s: %w", obj.GetNamespace(), owner.Name, err)
	}
	if err != nil || machine.UID != owner.UID {
		return nil, nil
	}
	return machine, nil
}

// ManagedExternally reports whether an infrastructure cluster is managed externally, by the annotation cluster.x-k8s.io/managed-by. The
// provider must ignore it, even when it is deleted.
func ManagedExternally(obj metav1.Object) bool {
	_, managed := obj.GetAnnotations()[clusterv1.ManagedByAnnotation]
	return managed
}

// Marked reports whether a Machine, or an infrastructure machine of a pool, has the annotation cluster.x-k8s.io/delete-machine: when its
// owner is scaled down, it is deleted before all others, also before unhealthy ones.
func Marked(obj metav1.Object) bool {
	_, marked := obj.GetAnnotations()[clusterv1.DeleteMachineAnnotation]
	return marked
}

// Unhealthy reports whether a Machine is deleted before healthy ones when its owner is scaled down: it has no Node, or is Broken. This is
// not whether it is available, which a Machine of unknown health is not.
func Unhealthy(m *clusterv1.Machine) bool {
	return !m.Status.NodeRef.IsDefined() || Broken(m)
}

// Broken reports whether a Machine failed, its Node is known to be unhealthy, or a health check marked it. Unknown health does not count: a
// partition makes it unknown for all Machines at once. Nor does a missing Node alone: the machine may still be joining the cluster.
func Broken(m *clusterv1.Machine) bool {
	older := m.GetV1Beta1Status()
	return older.FailureReason != nil || older.FailureMessage != nil ||
		m.Status.NodeRef.IsDefined() && condition.IsFalse(m, clusterv1.MachineNodeHealthyV1Beta1Condition) ||
		condition.IsFalse(m, clusterv1.MachineHealthCheckSucceededV1Beta1Condition)
}
