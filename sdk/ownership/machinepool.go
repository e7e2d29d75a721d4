package ownership

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachinePoolOf returns the MachinePool that controls an object. It returns nil without error if there is none, or if it does not
// exist.
func MachinePoolOf(ctx context.Context, c client.Reader, obj client.Object) (*clusterv1.MachinePool, error) {
	owner := metav1.GetControllerOf(obj)
	if owner == nil || !sameOwner(*owner, metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.MachinePoolKind, Name: owner.Name,
	}) {
		return nil, nil
	}
	pool := &clusterv1.MachinePool{}
	err := c.Get(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: owner.Name}, pool)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading MachinePool %s/%s: %w", obj.GetNamespace(), owner.Name, err)
	}
	if err != nil || pool.UID != owner.UID {
		return nil, nil
	}
	return pool, nil
}
