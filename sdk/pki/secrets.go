package pki

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Purpose is the purpose of a Secret of a cluster, and the end of its name, "<cluster>-<purpose>".
type Purpose string

const (
	// Kubeconfig is the admin kubeconfig.
	Kubeconfig Purpose = "kubeconfig"
	// ClusterCA is the CA of API server and client certificates.
	ClusterCA Purpose = "ca"
	// EtcdCA is the CA of etcd's certificates.
	EtcdCA Purpose = "etcd"
	// FrontProxyCA is the CA of the front proxy of aggregated API servers.
	FrontProxyCA Purpose = "proxy"
	// ServiceAccount is the key pair that service account tokens are signed with.
	ServiceAccount Purpose = "sa"
	// APIServerEtcdClient is the client certificate for external etcd, which the user provides.
	APIServerEtcdClient Purpose = "apiserver-etcd-client"
)

const (
	// KubeconfigKey is the data key of kubeconfig Secrets and of bootstrap data Secrets.
	KubeconfigKey = "value"
	// CertificateKey is the data key of a certificate, or of the public key of a key pair.
	CertificateKey = "tls.crt"
	// PrivateKeyKey is the data key of a private key.
	PrivateKeyKey = "tls.key"
)

// OfControlPlane returns the purposes of the certificates and keys that machines of a control plane have. With an external etcd, its
// client certificate is one of them.
func OfControlPlane(externalEtcd bool) []Purpose {
	all := []Purpose{ClusterCA, EtcdCA, FrontProxyCA, ServiceAccount}
	if externalEtcd {
		all = append(all, APIServerEtcdClient)
	}
	return all
}

// Purposes returns all purposes.
func Purposes() []Purpose {
	return append([]Purpose{Kubeconfig}, OfControlPlane(true)...)
}

// SplitSecretName returns the cluster and the purpose in the name of a Secret; ok is false for names that have none. Names of clusters
// and purposes may both have dashes.
func SplitSecretName(name string) (cluster string, p Purpose, ok bool) {
	for _, p := range Purposes() {
		if cluster, ok := strings.CutSuffix(name, "-"+string(p)); ok && cluster != "" {
			return cluster, p, true
		}
	}
	return "", "", false
}

// SecretName returns the name of a cluster's Secret.
func SecretName(cluster string, p Purpose) string { return cluster + "-" + string(p) }

// SecretKey returns the namespaced name of a cluster's Secret.
func SecretKey(cluster types.NamespacedName, p Purpose) types.NamespacedName {
	return types.NamespacedName{Namespace: cluster.Namespace, Name: SecretName(cluster.Name, p)}
}

// GeneratedAnnotation is on Secrets that a controller has generated; its value is the name of the Cluster. Secrets of users do not have
// it, and are never owned by controllers.
const GeneratedAnnotation = "cluster.x-k8s.io/generated-for"

// Orphaned reports whether a Secret was generated for a cluster, and has no owners: a backup was restored without them. Its controller
// becomes its owner again.
func Orphaned(s *corev1.Secret, cluster string) bool {
	return len(s.OwnerReferences) == 0 && s.DeletionTimestamp == nil && s.Type == clusterv1.ClusterSecretType &&
		s.Annotations[GeneratedAnnotation] == cluster && s.Labels[clusterv1.ClusterNameLabel] == cluster
}

// NewSecret returns a Secret of a cluster, with the label that managers require to cache it. With an owner, which may be nil, it counts as
// generated.
func NewSecret(cluster types.NamespacedName, p Purpose, data map[string][]byte, owner *metav1.OwnerReference) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace,
			Name:      SecretName(cluster.Name, p),
			Labels:    map[string]string{clusterv1.ClusterNameLabel: cluster.Name},
		},
		Type: clusterv1.ClusterSecretType,
		Data: data,
	}
	if owner != nil {
		s.OwnerReferences = []metav1.OwnerReference{*owner}
		s.Annotations = map[string]string{GeneratedAnnotation: cluster.Name}
	}
	return s
}

// Generate generates the CA or key pair for the Secret of a cluster, if the user provides none. CAs are valid for ten years. Objects choose
// the algorithm: see AlgorithmAnnotation.
func (k *Keys) Generate(p Purpose, now time.Time, objects ...metav1.Object) (Pair, error) {
	return k.GenerateUntil(p, now, now.Add(caValidity), objects...)
}

// GenerateUntil is Generate for CAs with another expiry.
func (k *Keys) GenerateUntil(p Purpose, now, expiry time.Time, objects ...metav1.Object) (Pair, error) {
	algorithm, err := k.algorithmFor(objects...)
	if err != nil {
		return Pair{}, err
	}
	key, err := k.key(algorithm)
	if err != nil {
		return Pair{}, err
	}
	if p == ServiceAccount {
		return signingPair(key)
	}
	ca, err := newCA(key, now, expiry)
	if err != nil {
		return Pair{}, err
	}
	return ca.PEM()
}

// Data returns the data of a Secret with the pair.
func (p Pair) Data() map[string][]byte {
	return map[string][]byte{CertificateKey: p.Certificate, PrivateKeyKey: p.Key}
}

// PairFrom reads a pair from a Secret. The key may be missing.
func PairFrom(s *corev1.Secret) (Pair, error) {
	p := Pair{Certificate: s.Data[CertificateKey], Key: s.Data[PrivateKeyKey]}
	if len(p.Certificate) == 0 {
		return p, fmt.Errorf("secret %s/%s has no data under key %q", s.Namespace, s.Name, CertificateKey)
	}
	return p, nil
}

// CAFrom reads a CA from a Secret. Without a private key it cannot issue certificates.
func CAFrom(s *corev1.Secret) (*CA, error) {
	p, err := PairFrom(s)
	if err != nil {
		return nil, err
	}
	a, err := ParseCA(p.Certificate, p.Key)
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	return a, nil
}
