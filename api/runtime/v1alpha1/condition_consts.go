package v1alpha1

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

const (
	// RuntimeExtensionDiscoveredCondition is True when the server has told which extensions it offers.
	RuntimeExtensionDiscoveredCondition clusterv1.ConditionType = "Discovered"

	// DiscoveryFailedReason means that the server could not be asked, or that its answer is not valid.
	DiscoveryFailedReason = "DiscoveryFailed"
)
