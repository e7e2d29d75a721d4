package v1beta2

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Conditions and reasons of IPAddressClaims.
const (
	// IPAddressClaimReadyCondition is True when the claim has an address.
	IPAddressClaimReadyCondition = clusterv1.ReadyCondition

	// IPAddressClaimReadyAllocationFailedReason means that no address could be allocated.
	IPAddressClaimReadyAllocationFailedReason = "AllocationFailed"

	// IPAddressClaimReadyPoolNotReadyReason means that the pool does not exist or is not ready.
	IPAddressClaimReadyPoolNotReadyReason = "PoolNotReady"

	// IPAddressClaimReadyPoolExhaustedReason means that the pool has no free address.
	IPAddressClaimReadyPoolExhaustedReason = "PoolExhausted"
)
