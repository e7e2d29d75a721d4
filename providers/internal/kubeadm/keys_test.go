package kubeadm

import (
	"testing"
	"time"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

func TestKeyAlgorithm(t *testing.T) {
	for algorithm, want := range map[bootstrapv1.EncryptionAlgorithmType]string{"": "", bootstrapv1.EncryptionAlgorithmRSA3072: "RSA-3072"} {
		config := &bootstrapv1.ClusterConfiguration{EncryptionAlgorithm: algorithm}
		if got := KeyAlgorithm(config).GetAnnotations()[pki.AlgorithmAnnotation]; got != want {
			t.Errorf("encryptionAlgorithm %q chooses %q, want %q", algorithm, got, want)
		}
	}
}

func TestCAExpiry(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for days, want := range map[int32]time.Time{
		0: time.Date(2035, 12, 30, 0, 0, 0, 0, time.UTC), 90: time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC),
		36500: time.Date(2125, 12, 8, 0, 0, 0, 0, time.UTC),
	} {
		config := &bootstrapv1.ClusterConfiguration{CACertificateValidityPeriodDays: days}
		if got := CAExpiry(config, now); !got.Equal(want) {
			t.Errorf("caCertificateValidityPeriodDays %d: expiry %s, want %s", days, got, want)
		}
	}
}
