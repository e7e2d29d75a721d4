package kubeadm

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// KeyAlgorithm returns the encryptionAlgorithm of a configuration as an object with the annotation that chooses it, for pki.Keys. Without
// one, it has no annotation.
func KeyAlgorithm(config *bootstrapv1.ClusterConfiguration) metav1.Object {
	chosen := &metav1.ObjectMeta{}
	if config.EncryptionAlgorithm != "" {
		chosen.Annotations = map[string]string{pki.AlgorithmAnnotation: string(config.EncryptionAlgorithm)}
	}
	return chosen
}

// CAExpiry returns when CAs expire that are generated now.
func CAExpiry(config *bootstrapv1.ClusterConfiguration, now time.Time) time.Time {
	return now.Add(time.Duration(cmp.Or(config.CACertificateValidityPeriodDays, defaultCAValidityDays)) * 24 * time.Hour)
}
