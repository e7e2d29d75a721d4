package reference

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

// AddOwner adds an owner to the referenced object, if it is missing. It returns false if the object does not exist. Owners are one
// list to a patch, so the patch requires the resource version that was read.
func AddOwner(
	ctx context.Context, to client.Writer, from external.Reader, ref *clusterv1.ContractVersionedObjectReference, namespace string,
	owner metav1.OwnerReference,
) (found bool, err error) {
	obj, err := from.Get(ctx, ref, namespace)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := mayOwn(obj, namespace); err != nil {
		return true, err
	}
	before := obj.DeepCopy()
	owners, changed := ownership.Ensure(obj.GetOwnerReferences(), owner)
	if !changed {
		return true, nil
	}
	obj.SetOwnerReferences(owners)
	if err := to.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return true, fmt.Errorf("adding %s %s as an owner of %s %s/%s: %w", owner.Kind, owner.Name, ref.Kind, namespace, ref.Name, err)
	}
	return true, nil
}
