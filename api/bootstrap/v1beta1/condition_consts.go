package v1beta1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"

// Conditions of KubeadmConfig; Ready summarizes both.
const (
	// DataSecretAvailableCondition reports whether the Secret with the bootstrap data exists.
	DataSecretAvailableCondition clusterv1.ConditionType = "DataSecretAvailable"

	// CertificatesAvailableCondition reports whether the cluster certificates required for bootstrapping exist or could
	// be generated.
	CertificatesAvailableCondition clusterv1.ConditionType = "CertificatesAvailable"
)

// Reasons of DataSecretAvailableCondition when it is false.
const (
	// WaitingForClusterInfrastructureReason (severity Info): the Cluster's infrastructure is not ready yet.
	WaitingForClusterInfrastructureReason = "WaitingForClusterInfrastructure"

	// WaitingForControlPlaneAvailableReason (severity Info): a joining machine waits for the first control plane machine.
	WaitingForControlPlaneAvailableReason = "WaitingForControlPlaneAvailable"

	// DataSecretGenerationFailedReason (severity Warning): rendering or storing the bootstrap data failed; it is retried.
	DataSecretGenerationFailedReason = "DataSecretGenerationFailed"
)

// Reasons of CertificatesAvailableCondition when it is false.
const (
	// CertificatesGenerationFailedReason (severity Warning): certificates for the first control plane machine could not
	// be generated or stored; it is retried.
	CertificatesGenerationFailedReason = "CertificatesGenerationFailed"

	// CertificatesCorruptedReason (severity Error): a joining machine found certificates missing or unreadable.
	CertificatesCorruptedReason = "CertificatesCorrupted"
)
