package kubeadm

import (
	"cmp"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// DefaultKeyAlgorithm is the algorithm of generated keys unless one is chosen. Cluster API has always generated such keys, and programs
// outside of a cluster, such as verifiers of ServiceAccount tokens, may rely on it.
const DefaultKeyAlgorithm = pki.RSA2048

// AddKeyAlgorithm adds the flag --key-algorithm, with the default DefaultKeyAlgorithm.
func AddKeyAlgorithm(fs *pflag.FlagSet, algorithm *pki.KeyAlgorithm) {
	*algorithm = DefaultKeyAlgorithm
	fs.Var(keyAlgorithmFlag{algorithm}, "key-algorithm", pki.AlgorithmUsage)
}

// keyAlgorithmFlag is a flag for which an empty value is the same as none: the manifests set it to a variable that may be unset, and capi
// has another default.
type keyAlgorithmFlag struct{ *pki.KeyAlgorithm }

// Set implements pflag.Value.
func (f keyAlgorithmFlag) Set(value string) error {
	if value == "" {
		return nil
	}
	return f.KeyAlgorithm.Set(value)
}

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
