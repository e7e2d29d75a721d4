package v1beta1

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

const (
	// ResourcesAppliedCondition is True when all manifests have been applied to all selected Clusters.
	ResourcesAppliedCondition clusterv1.ConditionType = "ResourcesApplied"

	// ClusterMatchFailedReason means that Clusters could not be selected.
	ClusterMatchFailedReason = "ClusterMatchFailed"

	// RemoteClusterClientFailedReason means that connecting to a workload cluster failed.
	RemoteClusterClientFailedReason = "RemoteClusterClientFailed"

	// RetrievingResourceFailedReason means that an object with manifests is missing or could not be read.
	RetrievingResourceFailedReason = "RetrievingResourceFailed"

	// WrongSecretTypeReason means that a Secret does not have type ClusterResourceSetSecretType.
	WrongSecretTypeReason = "WrongSecretType"

	// ApplyFailedReason means that applying manifests failed.
	ApplyFailedReason = "ApplyFailed"
)
