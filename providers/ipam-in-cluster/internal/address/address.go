// Package address builds and releases IPAddresses.
package address

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// New returns the IPAddress of a claim. It has the name of the claim, so that a claim cannot get two.
func New(claim *ipamv1.IPAddressClaim, key poolref.Key, pool poolref.Pool, address string) *ipamv1.IPAddress {
	a := &ipamv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: claim.Namespace, Name: claim.Name, Finalizers: []string{inclusterv1.AddressFinalizer},
			OwnerReferences: []metav1.OwnerReference{
				ownership.Reference(claim, ipamv1.GroupVersion.WithKind(ipamv1.IPAddressClaimKind), true),
				ownership.Reference(pool, inclusterv1.GroupVersion.WithKind(key.Kind), false),
			},
		},
		Spec: ipamv1.IPAddressSpec{
			ClaimRef: ipamv1.IPAddressClaimReference{Name: claim.Name}, PoolRef: claim.Spec.PoolRef,
			Address: address, Prefix: ptr.To(int32(pool.PoolSpec().Prefix)), Gateway: pool.PoolSpec().Gateway,
		},
	}
	if name := ClusterName(claim); name != "" {
		metav1.SetMetaDataLabel(&a.ObjectMeta, clusterv1.ClusterNameLabel, name)
	}
	// The manager that reconciles the claim releases the address if it becomes an orphan.
	if value, ok := claim.Labels[clusterv1.WatchLabel]; ok {
		metav1.SetMetaDataLabel(&a.ObjectMeta, clusterv1.WatchLabel, value)
	}
	return a
}

// ClusterName returns the name of the Cluster that a claim is for, which is in its namespace: spec.clusterName, or, as in Cluster API v1.7,
// its label. Empty: it is for none.
func ClusterName(claim *ipamv1.IPAddressClaim) string {
	return cmp.Or(claim.Spec.ClusterName, claim.Labels[clusterv1.ClusterNameLabel])
}

// ClaimOf returns the UID of the claim that an address was created for; empty if no claim controls it.
func ClaimOf(a *ipamv1.IPAddress) types.UID {
	owner := metav1.GetControllerOf(a)
	if owner == nil || owner.Kind != ipamv1.IPAddressClaimKind {
		return ""
	}
	return owner.UID
}

// IsOurs reports whether this provider created an address, also if the garbage collector has removed the reference to its claim, which
// it does for a claim that does not exist, because the pool is an owner, too.
func IsOurs(a *ipamv1.IPAddress) bool {
	return ClaimOf(a) != "" || controllerutil.ContainsFinalizer(a, inclusterv1.AddressFinalizer)
}

// Belongs reports whether an address was created for a claim. Without a reference to a claim, which a user may have removed, it is
// that of the claim whose status references it.
func Belongs(a *ipamv1.IPAddress, claim *ipamv1.IPAddressClaim) bool {
	if uid := ClaimOf(a); uid != "" {
		return uid == claim.UID
	}
	return IsOurs(a) && claim.Status.AddressRef.Name == a.Name
}

// Release deletes an address. It returns false if the finalizer of another controller keeps it.
func Release(ctx context.Context, clients step.Clients, a *ipamv1.IPAddress) (released bool, err error) {
	// The finalizer first: after that, its deletion is complete in one request.
	err = clients.Patch(ctx, a, func() { controllerutil.RemoveFinalizer(a, inclusterv1.AddressFinalizer) })
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("removing the finalizer of IPAddress %s/%s: %w", a.Namespace, a.Name, err)
	}
	if a.DeletionTimestamp.IsZero() {
		if err := clients.DeleteAny(ctx, a); err != nil {
			return false, fmt.Errorf("deleting IPAddress %s/%s: %w", a.Namespace, a.Name, err)
		}
	}
	return len(a.Finalizers) == 0, nil
}
