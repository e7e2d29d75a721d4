package v1beta2

// Conditions of KubeadmConfig besides those of all kinds; the condition Ready summarizes both. Their reasons are those of all
// kinds.
const (
	// KubeadmConfigDataSecretAvailableCondition reports whether the Secret with the bootstrap data exists; while it does not, the
	// reason says what is awaited.
	KubeadmConfigDataSecretAvailableCondition = "DataSecretAvailable"

	// KubeadmConfigCertificatesAvailableCondition reports whether the cluster certificates that bootstrapping requires exist
	// or could be generated.
	KubeadmConfigCertificatesAvailableCondition = "CertificatesAvailable"
)
