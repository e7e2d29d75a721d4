package v1beta2

// Conditions and reasons of ClusterResourceSets.
const (
	// ResourcesAppliedCondition is True when all manifests have been applied to all selected Clusters.
	ResourcesAppliedCondition = "ResourcesApplied"

	// ResourcesAppliedReason means that all manifests have been applied.
	ResourcesAppliedReason = "Applied"

	// ResourcesNotAppliedReason means that some manifests have not been applied to all selected Clusters.
	ResourcesNotAppliedReason = "NotApplied"

	// WrongSecretTypeReason means that a Secret does not have type ClusterResourceSetSecretType.
	WrongSecretTypeReason = "WrongSecretType"
)
