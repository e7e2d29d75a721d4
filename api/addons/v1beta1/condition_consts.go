package v1beta1

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

const (
	// ResourcesAppliedCondition is True when all manifests have been applied to all selected Clusters.
	ResourcesAppliedCondition clusterv1.ConditionType = "ResourcesApplied"

	// ClusterMatchFailedReason says that Clusters could not be selected.
	ClusterMatchFailedReason = "ClusterMatchFailed"

	// RemoteClusterClientFailedReason says that a workload cluster could not be connected to.
	RemoteClusterClientFailedReason = "RemoteClusterClientFailed"

	// RetrievingResourceFailedReason says that an object with manifests is missing or could not be read.
	RetrievingResourceFailedReason = "RetrievingResourceFailed"

	// WrongSecretTypeReason says that a Secret does not have type ClusterResourceSetSecretType.
	WrongSecretTypeReason = "WrongSecretType"

	// ApplyFailedReason says that applying manifests failed.
	ApplyFailedReason = "ApplyFailed"
)
