package v1beta2

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Conditions of KubeadmConfig; Ready summarizes both.
const (
	// DataSecretAvailableV1Beta1Condition reports whether the Secret with the bootstrap data exists.
	DataSecretAvailableV1Beta1Condition clusterv1.ConditionType = "DataSecretAvailable"

	// CertificatesAvailableV1Beta1Condition reports whether the cluster certificates required for bootstrapping exist or could
	// be generated.
	CertificatesAvailableV1Beta1Condition clusterv1.ConditionType = "CertificatesAvailable"
)

// Reasons of DataSecretAvailableV1Beta1Condition when it is false.
const (
	// WaitingForClusterInfrastructureV1Beta1Reason (severity Info): the Cluster's infrastructure is not ready yet.
	WaitingForClusterInfrastructureV1Beta1Reason = "WaitingForClusterInfrastructure"

	// WaitingForControlPlaneAvailableV1Beta1Reason (severity Info): a joining machine waits for the first control plane machine.
	WaitingForControlPlaneAvailableV1Beta1Reason = "WaitingForControlPlaneAvailable"

	// DataSecretGenerationFailedV1Beta1Reason (severity Warning): rendering or storing the bootstrap data failed; it is retried.
	DataSecretGenerationFailedV1Beta1Reason = "DataSecretGenerationFailed"
)

// Reasons of CertificatesAvailableV1Beta1Condition when it is false.
const (
	// CertificatesGenerationFailedV1Beta1Reason (severity Warning): certificates for the first control plane machine could not
	// be generated or stored; it is retried.
	CertificatesGenerationFailedV1Beta1Reason = "CertificatesGenerationFailed"

	// CertificatesCorruptedV1Beta1Reason (severity Error): a joining machine found certificates missing or unreadable.
	CertificatesCorruptedV1Beta1Reason = "CertificatesCorrupted"
)
