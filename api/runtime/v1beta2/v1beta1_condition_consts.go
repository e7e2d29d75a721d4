package v1beta2

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

const (
	// RuntimeExtensionDiscoveredV1Beta1Condition is True when the server has told which extensions it offers.
	RuntimeExtensionDiscoveredV1Beta1Condition clusterv1.ConditionType = "Discovered"

	// DiscoveryFailedV1Beta1Reason means that the server could not be asked, or that its answer is not valid.
	DiscoveryFailedV1Beta1Reason = "DiscoveryFailed"
)
