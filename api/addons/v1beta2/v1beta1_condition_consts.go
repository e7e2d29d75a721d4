package v1beta2

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

const (
	// ResourcesAppliedV1Beta1Condition is True when all manifests have been applied to all selected Clusters.
	ResourcesAppliedV1Beta1Condition clusterv1.ConditionType = "ResourcesApplied"

	// ClusterMatchFailedV1Beta1Reason means that Clusters could not be selected.
	ClusterMatchFailedV1Beta1Reason = "ClusterMatchFailed"

	// RemoteClusterClientFailedV1Beta1Reason means that connecting to a workload cluster failed.
	RemoteClusterClientFailedV1Beta1Reason = "RemoteClusterClientFailed"

	// RetrievingResourceFailedV1Beta1Reason means that an object with manifests is missing or could not be read.
	RetrievingResourceFailedV1Beta1Reason = "RetrievingResourceFailed"

	// WrongSecretTypeV1Beta1Reason means that a Secret does not have type ClusterResourceSetSecretType.
	WrongSecretTypeV1Beta1Reason = "WrongSecretType"

	// ApplyFailedV1Beta1Reason means that applying manifests failed.
	ApplyFailedV1Beta1Reason = "ApplyFailed"
)
