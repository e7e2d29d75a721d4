package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "ipam.cluster.x-k8s.io", Version: "v1alpha2"}

// Names of the kinds of this package, as they appear in manifests and references.
const (
	// InClusterIPPoolKind is the kind of InClusterIPPool.
	InClusterIPPoolKind = "InClusterIPPool"
	// GlobalInClusterIPPoolKind is the kind of GlobalInClusterIPPool.
	GlobalInClusterIPPoolKind = "GlobalInClusterIPPool"
)

// Finalizers that the provider sets.
const (
	// PoolFinalizer, on pools, is removed when no address of the pool is allocated.
	PoolFinalizer = "ipam.cluster.x-k8s.io/ProtectPool"
	// AddressFinalizer, on IPAddresses, is removed when their IPAddressClaim is deleted.
	AddressFinalizer = "ipam.cluster.x-k8s.io/ProtectAddress"
	// ClaimFinalizer, on IPAddressClaims, is removed when their IPAddress is deleted.
	ClaimFinalizer = "ipam.cluster.x-k8s.io/ReleaseAddress"
)

// Reasons of the condition Ready of IPAddressClaims and pools.
const (
	// PoolNotReadyReason: the pool of a claim does not exist, is paused, is being deleted, or its spec is invalid.
	PoolNotReadyReason = "PoolNotReady"
	// PoolExhaustedReason: the pool of a claim has no free address.
	PoolExhaustedReason = "PoolExhausted"
	// PoolBusyReason: the pool of a claim has reserved addresses for so many other claims, whose IPAddresses do not exist yet, that it
	// cannot reserve more. Their conditions say why, for example because of quotas.
	PoolBusyReason = "PoolBusy"
	// AllocationFailedReason: the IPAddress of a claim cannot be created.
	AllocationFailedReason = "AllocationFailed"
	// PoolInUseReason: a pool is being deleted, and has allocated addresses.
	PoolInUseReason = "PoolInUse"
	// InvalidSpecReason: the spec of a pool is invalid.
	InvalidSpecReason = "InvalidSpec"
)

// AddToScheme registers the kinds of this package, and their lists, in the scheme.
func AddToScheme(s *runtime.Scheme) error {
	return (&runtime.SchemeBuilder{addKnownTypes}).AddToScheme(s)
}

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&InClusterIPPool{}, &InClusterIPPoolList{},
		&GlobalInClusterIPPool{}, &GlobalInClusterIPPoolList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
